// bridle-supervisor: the fork server of a daemon, and every supervisor and reaper that come from it. Started by
// native/process/linux/fork_client.cc with its socket as descriptor 3, the name of the protocol and the daemon's pid as
// arguments, and a place for a lease's id in the environment.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "../process/linux/fork_protocol.h"
#include "../process/linux/pidfd.h"
#include "../process/process.h"
#include "../process/system_error.h"
#include "fork_server.h"

namespace {

int serve(const std::string& expected_parent) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) bridle::throw_errno("prctl PR_SET_PDEATHSIG");
  // The daemon may have died before the death signal was set.
  bridle::UniqueFd daemon = bridle::open_pidfd(getppid());
  if (!daemon || std::to_string(getppid()) != expected_parent) return 1;
  // What every birth token has in common is read once, here, and inherited.
  if (!bridle::identify(getpid(), "")) return 1;
  bridle::supervisor::ForkServer server(bridle::fork_socket_slot, getppid(), std::move(daemon));
  return server.run();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::string(argv[1]) != bridle::fork_protocol) {
    std::fputs("bridle-supervisor is started by bridle of the same version\n", stderr);
    return bridle::wrong_protocol_status;
  }
  try {
    return serve(argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bridle-supervisor: %s\n", error.what());
    return 70;
  }
}
