#include "caller.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "descriptor.h"

namespace bridle::fuse {

pid_t process_of_thread(pid_t thread) {
  if (thread <= 0) return 0;
  constexpr std::string_view field = "\nTgid:\t";
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/status", thread);
  const Descriptor fd(::open(path.data(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return 0;
  std::array<char, 1024> text{};  // Tgid is the fourth line
  const ssize_t length = ::read(fd.get(), text.data(), text.size());
  if (length <= 0) return 0;
  const std::string_view status(text.data(), static_cast<std::size_t>(length));
  const std::size_t at = status.find(field);
  if (at == std::string_view::npos) return 0;
  const std::string_view digits = status.substr(at + field.size());
  pid_t process = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), process);
  return process;
}

}  // namespace bridle::fuse
