#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "../process/linux/unique_fd.h"
#include "protocol.h"

namespace bridle::supervisor {

/// The child's ends of what the daemon holds the other ends of.
struct ChildEnds {
  std::array<UniqueFd, 3> streams;
  /// A socket. One byte of the daemon opens the gate, its end sends the child away. The child answers with a failure
  /// (Report::failed), or by executing its program, which closes the socket.
  UniqueFd gate;

  void close() {
    for (UniqueFd& stream : streams) stream.reset();
    gate.reset();
  }
};

/// A child that waits at its gate. It changes directory and executes only after the gate opened, so neither a working
/// directory nor a program inside Bridle's own mount can hold up anybody but the child.
struct GatedChild {
  pid_t pid = 0;
  bool born_inside = false;
};

/// Forks the child, into the cgroup (-1: there is none) where the kernel can. `streams` become its standard input,
/// output and error.
GatedChild fork_gated(const StartOrder& order, int cgroup, const std::array<int, 3>& streams, int gate);

}  // namespace bridle::supervisor
