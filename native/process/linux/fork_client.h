#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <string>

#include "fork_protocol.h"
#include "unique_fd.h"

namespace bridle {

/// Our ends of a supervisor: the control channel, three pipes, and the gate.
struct SupervisorEnds {
  UniqueFd control;
  UniqueFd stdin_end;
  UniqueFd stdout_end;
  UniqueFd stderr_end;
  UniqueFd gate;
};

/// What to start, with the supervisor's ends of everything.
struct SupervisorLaunch {
  std::string executable;
  /// Stands in the supervisor's environment as BRIDLE_LEASE.
  std::string lease;
  /// In the order of the protocol.
  std::array<UniqueFd, fork_descriptors> ends;
};

/// Connects a launch with new pipes. @returns our ends. Throws SystemError
SupervisorEnds connect(SupervisorLaunch& launch);

/// A fork server that runs, and our side of its socket.
class ForkClient {
 public:
  /// Executes the program, without copying page tables. The calling thread must live as long as what comes of it: a
  /// parent-death signal belongs to the thread that forked. Throws SystemError
  explicit ForkClient(const std::string& executable);
  /// Ends the server and waits for that.
  ~ForkClient();
  ForkClient(const ForkClient&) = delete;
  ForkClient& operator=(const ForkClient&) = delete;

  /// Readable when there are replies or the server is gone.
  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// @returns 0, EAGAIN when it must wait for a reply first, or another errno
  [[nodiscard]] int send(const SupervisorLaunch& launch) const;
  /// The next reply, if one is there; `gone` is set when there will be none.
  std::optional<ForkReply> receive(bool& gone) const;
  /// Ends the server, if it still runs. @returns its wait status: exit code or 128 + signal
  int end();

 private:
  UniqueFd socket_;
  UniqueFd pidfd_;
  pid_t pid_ = 0;
};

}  // namespace bridle
