#pragma once

#include <sys/types.h>

#include <optional>

#include "../process/linux/fork_protocol.h"
#include "../process/linux/unique_fd.h"
#include "supervisor.h"

namespace bridle::supervisor {

/// Waits, loaded and initialised, for requests, and forks a supervisor for each. The supervisor is the daemon's child,
/// not the server's. It saves the execution of a program at every start, and the daemon's page tables are never copied.
/// The server knows nothing of any lease: it may die at any time and only starts that it had not answered fail.
class ForkServer {
 public:
  /// `daemon` is a pidfd of the process `daemon_pid`.
  ForkServer(int socket, pid_t daemon_pid, UniqueFd daemon);

  /// Returns in the server when the daemon closed the socket, and in every supervisor when that has finished.
  /// @returns the exit status
  int run();

 private:
  struct Request {
    ForkRequest body{};
    UniqueFd control;
    ChildEnds child;
  };

  /// Nothing when the daemon is gone.
  std::optional<Request> receive();
  void reply(pid_t pid) const;
  int supervise(Request request);

  UniqueFd socket_;
  pid_t daemon_pid_;
  UniqueFd daemon_;
};

}  // namespace bridle::supervisor
