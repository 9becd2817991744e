#pragma once

#include <poll.h>

#include <array>
#include <string>

#include "../process/linux/unique_fd.h"
#include "protocol.h"

namespace bridle::supervisor {

/// The child's terminal and the pipes to the daemon. It is read here and not by the daemon, because an event loop takes
/// a hang-up for the end while the kernel still holds output.
class Terminal {
 public:
  /// A new terminal of this size. Throws SystemError.
  explicit Terminal(const TerminalSize& size);

  /// The side of the child, until it was handed over.
  [[nodiscard]] int slave() const { return slave_.get(); }
  /// Gives up the slave side and joins the master side with the pipes.
  void connect(UniqueFd input, UniqueFd output);
  void resize(const TerminalSize& size) const;

  /// What to poll for: terminal, input, output.
  [[nodiscard]] std::array<pollfd, 3> interests() const;
  /// Moves what can be moved without waiting.
  void move();
  /// What was printed so far is in the pipe, or nobody reads the pipe any more.
  [[nodiscard]] bool drained() const;
  /// Moves the rest, as long as the reader goes on reading, and closes the pipes.
  void finish();

 private:
  void read_terminal();
  void write_output();
  void read_input();
  void write_terminal();

  UniqueFd master_;
  UniqueFd slave_;
  UniqueFd input_;
  UniqueFd output_;
  std::string printed_;
  std::string typed_;
};

}  // namespace bridle::supervisor
