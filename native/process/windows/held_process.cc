#include "held_process.h"

#include <utility>

#include "../system_error.h"
#include "birth_token.h"
#include "last_error.h"

namespace bridle {
namespace {

/// Exit code of a child that its boundary did not take.
constexpr std::uint32_t refused = 1;

/// Holds every child of this process, from the moment it exists: should this process die between the creation of a
/// child and its assignment, the kernel ends the child, which would stay suspended for ever.
const Job& guard() {
  static const Job job;
  return job;
}

}  // namespace

HeldProcess::HeldProcess(Launch launch) : child_(create_suspended(std::move(launch), guard().handle())) {
  try {
    token_ = creation_token(child_.process.get());
  } catch (...) {
    end_process(child_.process.get(), refused);
    throw;
  }
}

HeldProcess::~HeldProcess() {
  // The job ends the others when its handle closes.
  if (!assigned_) end_process(child_.process.get(), refused);
}

void HeldProcess::assign() {
  try {
    job_.assign(child_.process.get());
  } catch (...) {
    end_process(child_.process.get(), refused);
    throw;
  }
  assigned_ = true;
}

void HeldProcess::resume() {
  if (!assigned_) throw SystemError(ERROR_INVALID_STATE, "resume");
  const DWORD previous = ResumeThread(child_.thread.get());
  if (previous == static_cast<DWORD>(-1)) throw_last_error("resume");
  // Any other count means that somebody else resumed or suspended it, too.
  if (previous != 1) throw SystemError(ERROR_INVALID_STATE, "resume");
}

void HeldProcess::terminate(std::uint32_t exit_code) {
  if (!assigned_) end_process(child_.process.get(), exit_code);
  job_.terminate(exit_code);
}

std::uint32_t HeldProcess::active() const {
  const bool loose = !assigned_ && WaitForSingleObject(child_.process.get(), 0) == WAIT_TIMEOUT;
  return job_.active() + (loose ? 1 : 0);
}

std::vector<std::uint32_t> HeldProcess::processes() const { return job_.processes(); }

}  // namespace bridle
