#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The control channel. A frame is a length (4 bytes, little endian, counting what follows), a kind (1 byte) and a
/// payload. Integers are little endian; a text is its length (4 bytes) and its bytes; a list is its length and its
/// entries. src/lifecycle/linux/protocol.ts is the other end.
namespace bridle::supervisor {

constexpr std::uint8_t protocol_version = 3;
constexpr std::size_t max_frame = 4UL * 1024 * 1024;

enum class Order : std::uint8_t { start = 1, clean_up = 2, resize = 3 };
enum class Report : std::uint8_t { gated = 1, failed = 2, exited = 3, empty = 4, not_empty = 5 };

struct TerminalSize {
  unsigned short rows = 0;
  unsigned short columns = 0;
};

struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

struct Rlimit {
  int resource = 0;
  std::uint64_t value = 0;
};

struct Setting {
  std::string file;
  std::string value;
};

/// A cgroup that limits the boundary: the boundary's own, or one in a version 1 hierarchy beside it.
struct Limit {
  std::string path;
  std::vector<Setting> settings;
};

struct Paths {
  std::vector<std::string> read_only;
  std::vector<std::string> read_write;
};

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
  /// A terminal of this size in the place of the streams.
  std::optional<TerminalSize> terminal;
  bool no_new_privileges = false;
  bool start_time_tokens = false;
  std::optional<Credentials> credentials;
  std::vector<Rlimit> rlimits;
  std::vector<Limit> limits;
  std::optional<Paths> paths;
};

/// Nothing when the payload is not exactly a start order of this version.
std::optional<StartOrder> parse_start(std::string_view payload);
std::optional<TerminalSize> parse_resize(std::string_view payload);

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

/// Our end of the control channel, non-blocking. A copy in a forked process has what was taken in before.
class Channel {
 public:
  explicit Channel(int fd);
  [[nodiscard]] int fd() const { return fd_; }
  /// Takes in what has arrived; closed also when a frame is too long or the channel failed.
  ReadResult read();
  std::optional<Frame> next();
  /// Drops the report when nobody reads: a daemon that is gone or stalled must not hold up the clean-up.
  void send(Report kind, const Payload& payload = {}) const;
  void send_failure(const std::string& step, int code) const;

 private:
  int fd_;
  std::string buffer_;
};

}  // namespace bridle::supervisor
