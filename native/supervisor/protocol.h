#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The control channel. A frame is a length (4 bytes, little endian, counting what follows), a kind (1 byte) and a
/// payload. Integers are little endian; a text is its length (4 bytes) and its bytes. src/lifecycle/protocol.ts is the
/// other end.
namespace bridle::supervisor {

constexpr std::uint8_t protocol_version = 1;
constexpr std::size_t max_frame = 512UL * 1024;

enum class Order : std::uint8_t { start = 1, go = 2, clean_up = 3 };
enum class Report : std::uint8_t { gated = 1, started = 2, failed = 3, exited = 4, empty = 5, not_empty = 6 };

struct StartOrder {
  std::uint32_t grace_ms = 0;
  std::uint32_t cleanup_ms = 0;
  /// Directory to make for the boundary; empty for none.
  std::string cgroup;
  /// File that keeps the outcome of a clean-up without a cgroup; empty for none.
  std::string witness;
  std::string cwd;
  std::vector<std::string> argv;
  std::vector<std::string> env;
};

/// Nothing when the payload is not exactly a start order of this version.
std::optional<StartOrder> parse_start(std::string_view payload);

class Payload {
 public:
  Payload& number(std::uint32_t value);
  Payload& wide(std::uint64_t value);
  Payload& text(std::string_view value);
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct Frame {
  std::uint8_t kind = 0;
  std::string payload;
};

enum class ReadResult { more, closed };

/// Our end of the control channel, non-blocking.
class Channel {
 public:
  explicit Channel(int fd);
  [[nodiscard]] int fd() const { return fd_; }
  /// Takes in what has arrived; closed also when a frame is too long or the channel failed.
  ReadResult read();
  std::optional<Frame> next();
  /// Drops the report when nobody reads: a daemon that is gone or stalled must not hold up the clean-up.
  void send(Report kind, const Payload& payload = {}) const;

 private:
  int fd_;
  std::string buffer_;
};

}  // namespace bridle::supervisor
