#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "../process/linux/unique_fd.h"
#include "protocol.h"

namespace bridle::supervisor {

/// Where a start failed, and why.
struct StartFailure {
  std::string step;
  int code = 0;
};

/// A child that waits at its gate. It changes directory and executes only after the gate opened, so neither a working
/// directory nor a program inside Bridle's own mount can hold up anybody but the child.
struct GatedChild {
  pid_t pid = 0;
  /// One byte opens it; closing it sends the child away.
  UniqueFd gate;
  /// Closes without a byte when the child executes; else holds a failure.
  UniqueFd status;
  bool born_inside = false;
};

/// Forks the child, into the cgroup (-1: there is none) where the kernel can. `streams` become its standard input,
/// output and error.
GatedChild fork_gated(const StartOrder& order, int cgroup, const std::array<int, 3>& streams);

/// Opens the gate; false when the child is gone.
bool open_gate(GatedChild& child);

/// Reads the status pipe after it became readable. Nothing: the child executes its program.
std::optional<StartFailure> read_status(const UniqueFd& status);

}  // namespace bridle::supervisor
