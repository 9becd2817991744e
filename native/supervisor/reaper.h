#pragma once

#include <array>
#include <optional>

#include "../process/linux/unique_fd.h"
#include "boundary.h"
#include "child.h"
#include "cleanup.h"
#include "protocol.h"
#include "terminal.h"

namespace bridle::supervisor {

/// Parent of the gated child: takes orders, reaps what comes up to it, and empties the boundary at the end, whoever is
/// left to hear of it.
class Reaper {
 public:
  Reaper(const StartOrder& order, const Boundary& boundary, Channel& channel, ChildEnds ends, Senses senses);

  /// @returns the exit status of Cleanup::report
  int run();

 private:
  void start();
  /// Descriptors that become the child's standard streams.
  std::array<int, 3> child_streams();
  void serve();
  void read_control();
  void handle(const Frame& frame);
  void resize(const Frame& frame);
  void child_exited(pid_t pid, int status);
  void report_exit();
  void fail(const std::string& step, int code);

  const StartOrder& order_;
  const Boundary& boundary_;
  Channel& channel_;
  ChildEnds ends_;
  Senses senses_;
  Cleanup cleanup_;
  std::optional<Terminal> terminal_;
  std::optional<GatedChild> child_;
  bool ending_ = false;
  bool child_exited_ = false;
  /// The child's end, until it is reported: what it printed goes first.
  std::optional<int> unreported_exit_;
};

}  // namespace bridle::supervisor
