#include "../system_error.h"

#include <windows.h>

#include "last_error.h"

namespace bridle {

/// The codes that the rest of Bridle knows by an errno name; every other one keeps its number.
std::string errno_name(int code) {
  switch (code) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
      return "ENOENT";
    case ERROR_DIRECTORY:
      return "ENOTDIR";
    case ERROR_ACCESS_DENIED:
      return "EACCES";
    case ERROR_BAD_EXE_FORMAT:
      return "ENOEXEC";
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
    case ERROR_COMMITMENT_LIMIT:
      return "ENOMEM";
    default:
      return "WIN32_" + std::to_string(code);
  }
}

SystemError::SystemError(int code, std::string step)
    : std::runtime_error(step + ": " + errno_name(code)), code_(code), step_(std::move(step)) {}

void throw_last_error(std::string step) {
  const auto code = static_cast<int>(GetLastError());
  throw SystemError(code, std::move(step));
}

}  // namespace bridle
