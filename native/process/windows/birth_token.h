#pragma once

#include <windows.h>

#include <string>

namespace bridle {

constexpr const char* creationtime_scheme = "creationtime";

/// `utc:` and when the process was created, in units of 100 ns since 1601. The time is absolute, so it tells processes
/// of different boots apart without naming the boot. Throws SystemError.
std::string creation_token(HANDLE process);

}  // namespace bridle
