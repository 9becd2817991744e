#include "birth_token.h"

#include <cstdint>
#include <optional>

#include "../process.h"
#include "../system_error.h"
#include "last_error.h"
#include "unique_handle.h"

namespace bridle {

std::string creation_token(HANDLE process) {
  FILETIME created{};
  FILETIME exited{};
  FILETIME kernel{};
  FILETIME user{};
  if (GetProcessTimes(process, &created, &exited, &kernel, &user) == 0) throw_last_error("read the creation time");
  const std::uint64_t ticks = (std::uint64_t{created.dwHighDateTime} << 32U) | created.dwLowDateTime;
  return "utc:" + std::to_string(ticks);
}

/// There is one scheme on Windows, so the wish for one changes nothing.
std::optional<ProcessIdentity> identify(std::int64_t pid, const std::string& /*scheme*/) {
  if (pid <= 0 || pid > UINT32_MAX) return std::nullopt;
  const UniqueHandle process(
      OpenProcess(SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, static_cast<DWORD>(pid)));
  if (!process) {
    if (GetLastError() == ERROR_INVALID_PARAMETER) return std::nullopt;
    throw_last_error("open process");
  }
  // A process that has ended keeps its number for as long as somebody has it open. Windows also rounds a number that
  // is no process's down to one that is.
  if (GetProcessId(process.get()) != static_cast<DWORD>(pid)) return std::nullopt;
  if (WaitForSingleObject(process.get(), 0) != WAIT_TIMEOUT) return std::nullopt;
  return ProcessIdentity{pid, creation_token(process.get()), creationtime_scheme};
}

}  // namespace bridle
