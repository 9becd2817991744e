#pragma once

#include <cstdint>
#include <vector>

#include "unique_handle.h"

namespace bridle {

/// A Job Object without a name: its one handle is not inheritable, no process breaks away from it, and the kernel ends
/// every process of it when the handle closes, which it does at the latest when this process ends.
class Job {
 public:
  Job();

  [[nodiscard]] HANDLE handle() const noexcept { return handle_.get(); }
  [[nodiscard]] bool contains(HANDLE process) const;
  /// Puts a process in and looks whether it is in. Throws SystemError, step `assign`.
  void assign(HANDLE process) const;
  /// Ends every process of it with this exit code. They are gone once active() says 0.
  void terminate(std::uint32_t exit_code) const;
  /// Number of processes that have not ended.
  [[nodiscard]] std::uint32_t active() const;
  /// Ids of processes in it; not more than 64.
  [[nodiscard]] std::vector<std::uint32_t> processes() const;

 private:
  UniqueHandle handle_;
};

}  // namespace bridle
