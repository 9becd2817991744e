#include "suspended_process.h"

#include <tlhelp32.h>

#include <array>
#include <utility>
#include <vector>

#include "../system_error.h"
#include "last_error.h"

namespace bridle {
namespace {

/// Exit code of a process that was never allowed to run.
constexpr std::uint32_t refused = 1;
/// Time for the kernel to take a process down that has not run, milliseconds.
constexpr DWORD end_timeout_ms = 5000;

/// Attributes of a process to be, with the memory that the system asks for. What they point at must outlive them.
class Attributes {
 public:
  explicit Attributes(DWORD count) {
    SIZE_T bytes = 0;
    InitializeProcThreadAttributeList(nullptr, count, 0, &bytes);  // fails, and says how much it needs
    memory_.resize(bytes);
    if (InitializeProcThreadAttributeList(list(), count, 0, &bytes) == 0) throw_last_error("exec");
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { DeleteProcThreadAttributeList(list()); }

  void set(DWORD_PTR attribute, HANDLE* handles, std::size_t count) {
    if (UpdateProcThreadAttribute(list(), 0, attribute, handles, count * sizeof(HANDLE), nullptr, nullptr) == 0) {
      throw_last_error("exec");
    }
  }
  [[nodiscard]] LPPROC_THREAD_ATTRIBUTE_LIST list() noexcept {
    return reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory_.data());
  }

 private:
  std::vector<std::byte> memory_;
};

/// Anything that put a second thread into the process could make it run before it is contained.
void check_one_thread(const SuspendedProcess& child, DWORD thread_id) {
  const UniqueHandle snapshot(CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0));
  if (!snapshot) throw_last_error("suspend");
  THREADENTRY32 entry{};
  entry.dwSize = sizeof entry;
  std::size_t threads = 0;
  bool ours = false;
  for (BOOL more = Thread32First(snapshot.get(), &entry); more != 0; more = Thread32Next(snapshot.get(), &entry)) {
    if (entry.th32OwnerProcessID != child.pid) continue;
    threads++;
    ours = ours || entry.th32ThreadID == thread_id;
  }
  if (threads != 1 || !ours) throw SystemError(ERROR_INVALID_STATE, "suspend");
}

PROCESS_INFORMATION create(Launch& launch, HANDLE guard) {
  const ChildPipes pipes = make_child_pipes(launch.pipes);
  std::array<HANDLE, 3> inherited{pipes.stdin_end.get(), pipes.stdout_end.get(), pipes.stderr_end.get()};
  std::array<HANDLE, 1> jobs{guard};
  Attributes attributes(2);
  attributes.set(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, inherited.data(), inherited.size());
  attributes.set(PROC_THREAD_ATTRIBUTE_JOB_LIST, jobs.data(), jobs.size());
  STARTUPINFOEXW startup{};
  startup.StartupInfo.cb = sizeof startup;
  startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
  startup.StartupInfo.hStdInput = inherited[0];
  startup.StartupInfo.hStdOutput = inherited[1];
  startup.StartupInfo.hStdError = inherited[2];
  startup.lpAttributeList = attributes.list();
  constexpr DWORD flags =
      CREATE_SUSPENDED | CREATE_NO_WINDOW | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT;
  PROCESS_INFORMATION created{};
  if (CreateProcessW(launch.program.c_str(), launch.command_line.data(), nullptr, nullptr, TRUE, flags,
                     launch.environment.data(), launch.directory.c_str(), &startup.StartupInfo, &created) == 0) {
    throw_last_error(GetLastError() == ERROR_DIRECTORY ? "chdir" : "exec");
  }
  return created;
}

}  // namespace

SuspendedProcess create_suspended(Launch launch, HANDLE guard) {
  const PROCESS_INFORMATION created = create(launch, guard);
  SuspendedProcess child{UniqueHandle(created.hProcess), UniqueHandle(created.hThread), created.dwProcessId};
  try {
    check_one_thread(child, created.dwThreadId);
  } catch (...) {
    end_process(child.process.get(), refused);
    throw;
  }
  return child;
}

void end_process(HANDLE process, std::uint32_t exit_code) noexcept {
  TerminateProcess(process, exit_code);
  WaitForSingleObject(process, end_timeout_ms);
}

}  // namespace bridle
