#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>

#include "boundary.h"
#include "protocol.h"

namespace bridle::supervisor {

/// How this process hears of others. The descriptors stay open as long as it lives.
struct Senses {
  /// A signalfd with SIGCHLD and the signals that ask for the end.
  int signals = -1;
  /// A pidfd of the daemon.
  int daemon = -1;
};

/// Takes the waiting signals from a signalfd. @returns whether one of them asks for the end
bool take_signals(int signals);

/// Ends everything below this process and in its boundary, and reports on it. The supervisor and the reaper each have
/// one; whoever is left does the work.
class Cleanup {
 public:
  /// Called with each child that was reaped and its wait status.
  using ExitHandler = std::function<void(pid_t pid, int status)>;

  Cleanup(const StartOrder& order, const Boundary& boundary, Channel& channel, Senses senses, ExitHandler on_exit);

  /// Takes the exits of children and of orphans that came up to this process.
  void reap();
  /// TERM, grace, KILL until nothing is left or the time is over; then the cgroups are removed.
  /// @returns whether the boundary was observed empty
  bool run();
  /// Reports the outcome to the daemon, as a witness file too, and stays until it was heard.
  /// @returns the exit status: 0 when the boundary was empty, 1 when it was not
  int report(bool emptied);

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool empty() const;
  void terminate(Clock::time_point deadline);
  void kill_until(Clock::time_point deadline);
  /// Waits until the boundary is empty, or nothing has ended for a while, or `until`.
  void settle(Clock::time_point until);
  /// @returns whether something happened before `until`
  bool wait_for_change(Clock::time_point until);
  void remove_boundary() const;
  void report_survivors() const;
  void leave_witness(const char* outcome) const;
  void await_hearing();

  const StartOrder& order_;
  const Boundary& boundary_;
  Channel& channel_;
  Senses senses_;
  ExitHandler on_exit_;
  bool no_children_ = false;
};

}  // namespace bridle::supervisor
