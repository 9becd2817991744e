#include "protocol.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "../process/system_error.h"

namespace bridle::supervisor {
namespace {

constexpr std::size_t length_size = 4;

constexpr std::uint32_t flag_terminal = 1;
constexpr std::uint32_t flag_no_new_privileges = 2;
constexpr std::uint32_t flag_start_time_tokens = 4;
constexpr std::uint32_t flag_credentials = 8;
constexpr std::uint32_t flag_paths = 16;

std::uint32_t decode_number(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t at = 0; at < length_size; ++at) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at])) << (8U * at);
  }
  return value;
}

/// Reads a payload from the front; `failed` once anything was missing.
class Parser {
 public:
  explicit Parser(std::string_view rest) : rest_(rest) {}

  std::uint8_t byte() {
    const auto taken = take(1);
    return taken.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(taken.front());
  }
  std::uint32_t number() {
    const auto taken = take(length_size);
    return taken.empty() ? 0 : decode_number(taken);
  }
  std::string text() {
    std::string value(take(number()));
    if (value.find('\0') != std::string::npos) failed_ = true;
    return value;
  }
  std::uint64_t wide() {
    const std::uint64_t low = number();
    return low | (static_cast<std::uint64_t>(number()) << 32U);
  }
  /// Reads each entry with `read`. An entry takes at least one byte, so a hostile count ends with the payload.
  template <typename Read>
  auto list(const Read& read) {
    std::vector<decltype(read())> values;
    const std::uint32_t count = number();
    for (std::uint32_t at = 0; at < count && !failed_; ++at) values.push_back(read());
    return values;
  }
  std::vector<std::string> texts() {
    return list([this] { return text(); });
  }
  [[nodiscard]] bool complete() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (failed_ || rest_.size() < size) {
      failed_ = true;
      return {};
    }
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool failed_ = false;
};

TerminalSize read_size(Parser& parser) {
  const std::uint32_t cells = parser.number();
  return {static_cast<unsigned short>(cells >> 16U), static_cast<unsigned short>(cells & 0xffffU)};
}

Credentials read_credentials(Parser& parser) {
  Credentials credentials;
  credentials.uid = parser.number();
  credentials.gid = parser.number();
  credentials.groups = parser.list([&] { return static_cast<gid_t>(parser.number()); });
  return credentials;
}

Limit read_limit(Parser& parser) {
  Limit limit;
  limit.path = parser.text();
  limit.settings = parser.list([&] {
    std::string file = parser.text();
    return Setting{std::move(file), parser.text()};
  });
  return limit;
}

}  // namespace

std::optional<StartOrder> parse_start(std::string_view payload) {
  Parser parser(payload);
  if (parser.byte() != protocol_version) return std::nullopt;
  StartOrder order;
  order.grace_ms = parser.number();
  order.cleanup_ms = parser.number();
  order.cgroup = parser.text();
  order.witness = parser.text();
  order.cwd = parser.text();
  order.argv = parser.texts();
  order.env = parser.texts();
  const std::uint32_t flags = parser.number();
  order.no_new_privileges = (flags & flag_no_new_privileges) != 0;
  order.start_time_tokens = (flags & flag_start_time_tokens) != 0;
  if ((flags & flag_terminal) != 0) order.terminal = read_size(parser);
  if ((flags & flag_credentials) != 0) order.credentials = read_credentials(parser);
  order.rlimits = parser.list([&] {
    const auto resource = static_cast<int>(parser.number());
    return Rlimit{resource, parser.wide()};
  });
  order.limits = parser.list([&] { return read_limit(parser); });
  if ((flags & flag_paths) != 0) {
    order.paths.emplace();
    order.paths->read_only = parser.texts();
    order.paths->read_write = parser.texts();
  }
  if (!parser.complete() || order.argv.empty()) return std::nullopt;
  return order;
}

std::optional<TerminalSize> parse_resize(std::string_view payload) {
  Parser parser(payload);
  const TerminalSize size = read_size(parser);
  if (!parser.complete()) return std::nullopt;
  return size;
}

Payload& Payload::number(std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) bytes_.push_back(static_cast<char>((value >> shift) & 0xffU));
  return *this;
}

Payload& Payload::wide(std::uint64_t value) {
  return number(static_cast<std::uint32_t>(value)).number(static_cast<std::uint32_t>(value >> 32U));
}

Payload& Payload::text(std::string_view value) {
  number(static_cast<std::uint32_t>(value.size()));
  bytes_.append(value);
  return *this;
}

Channel::Channel(int fd) : fd_(fd) { fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK); }

ReadResult Channel::read() {
  // Small, because its pages are touched at every start.
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t size = ::read(fd_, chunk.data(), chunk.size());
    if (size > 0) {
      buffer_.append(chunk.data(), static_cast<std::size_t>(size));
      if (buffer_.size() > max_frame + length_size) return ReadResult::closed;
      continue;
    }
    if (size < 0 && errno == EINTR) continue;
    return size < 0 && errno == EAGAIN ? ReadResult::more : ReadResult::closed;
  }
}

std::optional<Frame> Channel::next() {
  if (buffer_.size() < length_size) return std::nullopt;
  const std::size_t length = decode_number(buffer_);
  if (length == 0 || length > max_frame) {
    buffer_.clear();
    return Frame{};
  }
  if (buffer_.size() < length_size + length) return std::nullopt;
  Frame frame{static_cast<std::uint8_t>(buffer_[length_size]), buffer_.substr(length_size + 1, length - 1)};
  buffer_.erase(0, length_size + length);
  return frame;
}

void Channel::send(Report kind, const Payload& payload) const {
  Payload frame;
  frame.number(static_cast<std::uint32_t>(payload.bytes().size() + 1));
  const std::string bytes = frame.bytes() + static_cast<char>(kind) + payload.bytes();
  static_cast<void>(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

void Channel::send_failure(const std::string& step, int code) const {
  send(Report::failed, Payload().text(step).text(errno_name(code)));
}

}  // namespace bridle::supervisor
