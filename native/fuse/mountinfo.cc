#include "mountinfo.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <utility>

#include "descriptor.h"
#include "native/process/system_error.h"

namespace bridle::fuse {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// Space, tab, newline and backslash stand as \ooo in mountinfo.
std::string unescape(std::string_view text) {
  constexpr std::size_t digits = 3;
  constexpr int octal = 8;
  std::string plain;
  while (!text.empty()) {
    unsigned int code = 0;
    const char* const first = text.data() + 1;
    if (text[0] == '\\' && text.size() > digits &&
        std::from_chars(first, first + digits, code, octal).ptr == first + digits) {
      plain += static_cast<char>(code);
      text.remove_prefix(digits + 1);
    } else {
      plain += text[0];
      text.remove_prefix(1);
    }
  }
  return plain;
}

bool is_fuse(std::string_view type) { return type == "fuse" || type == "fuseblk" || type.starts_with("fuse."); }

}  // namespace

std::vector<MountEntry> parse_mountinfo(std::string_view text) {
  constexpr std::size_t device_field = 2;
  constexpr std::size_t mountpoint_field = 4;
  std::vector<MountEntry> mounts;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t end_of_optional = line.find(" - ");
    if (end_of_optional == std::string_view::npos) continue;
    const auto fields = split(line.substr(0, end_of_optional), ' ');
    const auto rest = split(line.substr(end_of_optional + 3), ' ');
    if (fields.size() <= mountpoint_field || rest.size() < 2 || !is_fuse(rest[0])) continue;
    const auto device = split(fields[device_field], ':');
    unsigned int minor = 0;
    if (device.size() != 2) continue;
    if (std::from_chars(device[1].data(), device[1].data() + device[1].size(), minor).ec != std::errc{}) continue;
    mounts.push_back({.mountpoint = unescape(fields[mountpoint_field]),
                      .type = unescape(rest[0]),
                      .source = unescape(rest[1]),
                      .connection = minor});
  }
  return mounts;
}

std::vector<MountEntry> list_fuse_mounts() {
  const Descriptor fd(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) throw_errno("open /proc/self/mountinfo");
  std::string text;
  std::array<char, 16384> part{};
  for (;;) {
    const ssize_t length = ::read(fd.get(), part.data(), part.size());
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) throw_errno("read /proc/self/mountinfo");
    if (length == 0) return parse_mountinfo(text);
    text.append(part.data(), static_cast<std::size_t>(length));
  }
}

}  // namespace bridle::fuse
