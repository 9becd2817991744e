#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "../process/linux/unique_fd.h"
#include "cgroup.h"
#include "child.h"
#include "protocol.h"

namespace bridle::supervisor {

/// Runs one gated child and empties its boundary at the end, whoever is left to hear of it.
class Supervisor {
 public:
  /// Takes over the descriptors. `signals` is a signalfd with SIGCHLD and the signals that ask for the end.
  Supervisor(int control, std::array<UniqueFd, 3> streams, UniqueFd signals);

  /// @returns the exit status: 0 when the boundary was observed empty, 1 when it was not
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  void serve();
  void read_control();
  void handle(const Frame& frame);
  void start(StartOrder order);
  void go();
  /// @returns whether one of them asked for the end
  bool read_signals();
  void finish_exec();
  void reap();
  void report_failure(const std::string& step, int code);
  int clean_up();
  void kill_until(Clock::time_point deadline);
  void wait_for_change(Clock::time_point until);
  [[nodiscard]] bool empty() const;
  void leave_witness(const char* outcome) const;
  void await_hearing();

  Channel channel_;
  std::array<UniqueFd, 3> streams_;
  UniqueFd signals_;
  StartOrder order_;
  std::optional<Cgroup> cgroup_;
  std::optional<GatedChild> child_;
  bool ending_ = false;
  bool listening_ = true;
  bool child_exited_ = false;
  bool no_children_ = true;
};

}  // namespace bridle::supervisor
