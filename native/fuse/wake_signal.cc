#include "wake_signal.h"

#include <pthread.h>

#include <cerrno>
#include <csignal>

#include "native/process/system_error.h"

namespace bridle::fuse {
namespace {

void do_nothing(int /*signal*/) {}

int claim_signal() {
  for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal) {
    struct sigaction action{};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) continue;
    action = {};
    action.sa_handler = do_nothing;  // without SA_RESTART, so that read(2) returns
    if (sigaction(signal, &action, nullptr) == 0) return signal;
  }
  throw SystemError(EAGAIN, "find a free signal");
}

}  // namespace

int WakeSignal::number() {
  static const int claimed = claim_signal();
  return claimed;
}

void WakeSignal::accept() {
  sigset_t mine;
  sigemptyset(&mine);
  sigaddset(&mine, number());
  pthread_sigmask(SIG_UNBLOCK, &mine, nullptr);
}

void WakeSignal::send(std::thread& thread) { pthread_kill(thread.native_handle(), number()); }

}  // namespace bridle::fuse
