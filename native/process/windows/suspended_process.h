#pragma once

#include <windows.h>

#include <cstdint>
#include <string>

#include "child_pipes.h"
#include "unique_handle.h"

namespace bridle {

struct Launch {
  std::wstring program;
  /// Program and arguments, quoted.
  std::wstring command_line;
  std::wstring directory;
  /// `NAME=value` entries, each with its NUL, then one more NUL.
  std::wstring environment;
  PipeNames pipes;
};

/// A process whose only thread has not run yet.
struct SuspendedProcess {
  UniqueHandle process;
  UniqueHandle thread;
  std::uint32_t pid = 0;
};

/// The process is born in `guard`, a job of ours, and inherits its three standard streams and no other handle.
/// Throws SystemError, steps `pipe`, `exec`, `chdir` and `suspend`; no process is left then.
SuspendedProcess create_suspended(Launch launch, HANDLE guard);

/// Ends a process and waits until it is gone.
void end_process(HANDLE process, std::uint32_t exit_code) noexcept;

}  // namespace bridle
