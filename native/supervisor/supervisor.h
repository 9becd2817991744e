#pragma once

#include "../process/linux/unique_fd.h"
#include "boundary.h"
#include "protocol.h"
#include "reaper.h"

namespace bridle::supervisor {

/// The daemon's direct child. It makes the boundary and starts the reaper, which does the work; when the reaper is
/// killed, what it leaves comes up to the supervisor, which finishes. Either of them is enough to end everything.
class Supervisor {
 public:
  Supervisor(int control, ChildEnds child, Senses senses);

  /// @returns the exit status: 0 when the boundary was observed empty, 1 when it was not or nothing was started
  int run();

 private:
  /// Nothing when the daemon went away or does not speak the protocol.
  std::optional<StartOrder> await_order();
  int reap_and_report(const StartOrder& order, const Boundary& boundary);
  int watch(pid_t reaper, const StartOrder& order, const Boundary& boundary);

  Channel channel_;
  ChildEnds child_;
  Senses senses_;
};

}  // namespace bridle::supervisor
