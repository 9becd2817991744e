#pragma once

#include <windows.h>

#include <cstdint>
#include <memory>

#include "exit_reporter.h"

namespace bridle {

/// Reports the exit of one process, once. One thread of the system waits for many processes.
class ExitWatch {
 public:
  /// `process` must stay open for as long as this lives. Throws SystemError, step `watch`.
  ExitWatch(HANDLE process, std::shared_ptr<ExitReporter> reporter, std::uint32_t id);
  /// Waits for a report that is under way.
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;

 private:
  static void CALLBACK report(void* context, BOOLEAN timed_out);

  HANDLE process_;
  std::shared_ptr<ExitReporter> reporter_;
  std::uint32_t id_;
  HANDLE wait_ = nullptr;
};

}  // namespace bridle
