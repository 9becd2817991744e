#include "terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "../process/system_error.h"

namespace bridle::supervisor {
namespace {

constexpr std::size_t buffer_size = 64UL * 1024;
/// A reader that has taken nothing for this long at the end does not get the rest.
constexpr int reader_patience_ms = 1000;
/// The line discipline turns it into the end of input.
constexpr char end_of_input = '\x04';

void set_non_blocking(const UniqueFd& fd) { fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK); }

bool would_wait(ssize_t size) { return size < 0 && (errno == EAGAIN || errno == EINTR); }

}  // namespace

Terminal::Terminal(const TerminalSize& size) : master_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  if (!master_) throw_errno("terminal");
  if (unlockpt(master_.get()) != 0) throw_errno("terminal");
  // Opened through the master, so that no name in another mount of devpts is taken for it.
  slave_ = UniqueFd(ioctl(master_.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave_) throw_errno("terminal");
  resize(size);
}

void Terminal::connect(UniqueFd input, UniqueFd output) {
  slave_.reset();
  input_ = std::move(input);
  output_ = std::move(output);
  for (const UniqueFd* fd : {&master_, &input_, &output_}) set_non_blocking(*fd);
}

void Terminal::resize(const TerminalSize& size) const {
  winsize value{};
  value.ws_row = size.rows;
  value.ws_col = size.columns;
  ioctl(master_.get(), TIOCSWINSZ, &value);
}

std::array<pollfd, 3> Terminal::interests() const {
  const bool reads = master_ && printed_.empty();
  const bool writes = master_ && !typed_.empty();
  const int terminal = reads || writes ? master_.get() : -1;
  const auto wanted = static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
  return {pollfd{terminal, wanted, 0}, pollfd{typed_.empty() ? input_.get() : -1, POLLIN, 0},
          pollfd{printed_.empty() ? -1 : output_.get(), POLLOUT, 0}};
}

void Terminal::move() {
  read_input();
  write_terminal();
  write_output();
  read_terminal();
  write_output();
}

bool Terminal::drained() const {
  if (!output_) return true;
  if (!printed_.empty()) return false;
  // Polling makes the kernel hand over what is under way inside it.
  pollfd entry{master_.get(), POLLIN, 0};
  return !master_ || poll(&entry, 1, 0) == 0 || (entry.revents & POLLIN) == 0;
}

void Terminal::finish() {
  input_.reset();
  typed_.clear();
  move();
  while (!drained()) {
    pollfd entry{output_.get(), POLLOUT, 0};
    if (poll(&entry, 1, reader_patience_ms) <= 0) break;
    move();
  }
  output_.reset();
  master_.reset();
}

void Terminal::read_terminal() {
  if (!master_ || !printed_.empty()) return;
  printed_.resize(buffer_size);
  const ssize_t size = read(master_.get(), printed_.data(), printed_.size());
  const bool waits = would_wait(size);
  printed_.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  if (size > 0 || waits) return;
  // EIO is how a terminal says that nobody has its other side any more.
  master_.reset();
  output_.reset();
}

void Terminal::write_output() {
  if (printed_.empty()) return;
  const ssize_t size = output_ ? write(output_.get(), printed_.data(), printed_.size()) : -1;
  if (size > 0) printed_.erase(0, static_cast<std::size_t>(size));
  if (size >= 0 || (output_ && would_wait(size))) return;
  // Nobody reads. The child goes on, and what it prints is taken from it and dropped.
  output_.reset();
  printed_.clear();
}

void Terminal::read_input() {
  if (!input_ || !typed_.empty()) return;
  typed_.resize(buffer_size);
  const ssize_t size = read(input_.get(), typed_.data(), typed_.size());
  const bool waits = would_wait(size);
  typed_.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  if (size > 0 || waits) return;
  input_.reset();
  typed_.push_back(end_of_input);
}

void Terminal::write_terminal() {
  if (!master_ || typed_.empty()) return;
  const ssize_t size = write(master_.get(), typed_.data(), typed_.size());
  if (size > 0) typed_.erase(0, static_cast<std::size_t>(size));
}

}  // namespace bridle::supervisor
