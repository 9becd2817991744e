#include "job.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "../system_error.h"
#include "last_error.h"

namespace bridle {
namespace {

constexpr std::size_t shown_processes = 64;

}  // namespace

Job::Job() : handle_(CreateJobObjectW(nullptr, nullptr)) {
  if (!handle_) throw_last_error("job");
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  // Neither BREAKAWAY_OK nor SILENT_BREAKAWAY_OK.
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  if (SetInformationJobObject(handle_.get(), JobObjectExtendedLimitInformation, &limits, sizeof limits) == 0) {
    throw_last_error("job");
  }
}

bool Job::contains(HANDLE process) const {
  BOOL inside = FALSE;
  if (IsProcessInJob(process, handle_.get(), &inside) == 0) throw_last_error("assign");
  return inside != FALSE;
}

void Job::assign(HANDLE process) const {
  if (AssignProcessToJobObject(handle_.get(), process) == 0) throw_last_error("assign");
  if (!contains(process)) throw SystemError(ERROR_INVALID_STATE, "assign");
}

void Job::terminate(std::uint32_t exit_code) const {
  if (TerminateJobObject(handle_.get(), exit_code) == 0) throw_last_error("terminate");
}

std::uint32_t Job::active() const {
  JOBOBJECT_BASIC_ACCOUNTING_INFORMATION accounting{};
  if (QueryInformationJobObject(handle_.get(), JobObjectBasicAccountingInformation, &accounting, sizeof accounting,
                                nullptr) == 0) {
    throw_last_error("count processes");
  }
  return accounting.ActiveProcesses;
}

std::vector<std::uint32_t> Job::processes() const {
  // The structure ends in an array of one id that is really as long as the buffer.
  constexpr std::size_t ids_at = offsetof(JOBOBJECT_BASIC_PROCESS_ID_LIST, ProcessIdList);
  alignas(JOBOBJECT_BASIC_PROCESS_ID_LIST) std::array<std::byte, ids_at + shown_processes * sizeof(ULONG_PTR)> buffer{};
  if (QueryInformationJobObject(handle_.get(), JobObjectBasicProcessIdList, buffer.data(),
                                static_cast<DWORD>(buffer.size()), nullptr) == 0 &&
      GetLastError() != ERROR_MORE_DATA) {
    throw_last_error("list processes");
  }
  DWORD count = 0;
  std::memcpy(&count, buffer.data() + offsetof(JOBOBJECT_BASIC_PROCESS_ID_LIST, NumberOfProcessIdsInList),
              sizeof count);
  std::vector<std::uint32_t> ids;
  for (std::size_t at = 0; at < count && at < shown_processes; at++) {
    ULONG_PTR id = 0;
    std::memcpy(&id, buffer.data() + ids_at + at * sizeof id, sizeof id);
    ids.push_back(static_cast<std::uint32_t>(id));
  }
  return ids;
}

}  // namespace bridle
