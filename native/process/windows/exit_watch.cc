#include "exit_watch.h"

#include <utility>

#include "last_error.h"

namespace bridle {

ExitWatch::ExitWatch(HANDLE process, std::shared_ptr<ExitReporter> reporter, std::uint32_t id)
    : process_(process), reporter_(std::move(reporter)), id_(id) {
  if (RegisterWaitForSingleObject(&wait_, process, report, this, INFINITE, WT_EXECUTEONLYONCE) == 0) {
    throw_last_error("watch");
  }
}

ExitWatch::~ExitWatch() { UnregisterWaitEx(wait_, INVALID_HANDLE_VALUE); }

void ExitWatch::report(void* context, BOOLEAN /*timed_out*/) {
  const auto* watch = static_cast<ExitWatch*>(context);
  DWORD code = 0;
  GetExitCodeProcess(watch->process_, &code);
  watch->reporter_->exited(watch->id_, code);
}

}  // namespace bridle
