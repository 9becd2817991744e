#include "../system_error.h"

#include <cstring>

namespace bridle {

std::string errno_name(int code) {
  const char* name = strerrorname_np(code);
  return name == nullptr ? std::string("E").append(std::to_string(code)) : name;
}

SystemError::SystemError(int code, std::string step)
    : std::runtime_error(step + ": " + errno_name(code)), code_(code), step_(std::move(step)) {}

void throw_errno(std::string step) {
  const int code = errno;
  throw SystemError(code, std::move(step));
}

}  // namespace bridle
