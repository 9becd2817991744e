#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>

namespace bridle {

/// A system call that failed: its errno and the step in our words.
class SystemError : public std::runtime_error {
 public:
  SystemError(int code, std::string step);

  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] const std::string& step() const noexcept { return step_; }

 private:
  int code_;
  std::string step_;
};

/// Name of an errno as in `ENOENT`; `E<number>` when the C library has no name for it.
std::string errno_name(int code);

/// Throws SystemError with the current errno.
[[noreturn]] void throw_errno(std::string step);

}  // namespace bridle
