#pragma once

#include <string>

namespace bridle {

/// Throws SystemError with what GetLastError() says. Call it before anything else can change that.
[[noreturn]] void throw_last_error(std::string step);

}  // namespace bridle
