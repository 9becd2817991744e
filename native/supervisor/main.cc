// bridle-supervisor: the daemon's direct child, one for each run. Started by native/process/linux/spawner.cc with the
// control channel as descriptor 3 and the child's standard streams as 4, 5 and 6; its one argument is the daemon's pid.
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "../process/linux/pidfd.h"
#include "../process/system_error.h"
#include "supervisor.h"

namespace {

constexpr int control_slot = 3;

bridle::UniqueFd block_and_open_signals() {
  sigset_t blocked;
  sigfillset(&blocked);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&watched, number);
  bridle::UniqueFd fd(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) bridle::throw_errno("signalfd");
  return fd;
}

int supervise(const std::string& expected_parent) {
  const bridle::UniqueFd signals = block_and_open_signals();
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) bridle::throw_errno("prctl PR_SET_PDEATHSIG");
  // The daemon may have died before the death signal was set; nothing has been started yet.
  const bridle::UniqueFd daemon = bridle::open_pidfd(getppid());
  if (!daemon || std::to_string(getppid()) != expected_parent) return 1;
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) bridle::throw_errno("prctl PR_SET_CHILD_SUBREAPER");
  bridle::supervisor::Supervisor supervisor(
      control_slot,
      {bridle::UniqueFd(control_slot + 1), bridle::UniqueFd(control_slot + 2), bridle::UniqueFd(control_slot + 3)},
      {signals.get(), daemon.get()});
  return supervisor.run();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("bridle-supervisor is started by bridle itself\n", stderr);
    return 64;
  }
  try {
    return supervise(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bridle-supervisor: %s\n", error.what());
    return 70;
  }
}
