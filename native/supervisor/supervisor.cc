#include "supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "../process/process.h"
#include "../process/system_error.h"
#include "sweep.h"

namespace bridle::supervisor {
namespace {

constexpr auto sweep_interval = std::chrono::milliseconds(5);
constexpr int remove_attempts = 200;
constexpr std::size_t max_survivors = 32;

int milliseconds_until(std::chrono::steady_clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000));
}

}  // namespace

Supervisor::Supervisor(int control, std::array<UniqueFd, 3> streams, UniqueFd signals)
    : channel_(control), streams_(std::move(streams)), signals_(std::move(signals)) {}

int Supervisor::run() {
  while (!ending_) serve();
  const int status = clean_up();
  await_hearing();
  return status;
}

void Supervisor::serve() {
  std::array<pollfd, 3> entries{pollfd{channel_.fd(), POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0},
                                pollfd{child_ ? child_->status.get() : -1, POLLIN, 0}};
  if (poll(entries.data(), entries.size(), -1) < 0) return;
  if (entries[2].revents != 0) finish_exec();
  if (entries[1].revents != 0 && read_signals()) ending_ = true;
  if (entries[0].revents != 0) read_control();
}

void Supervisor::read_control() {
  const ReadResult result = channel_.read();
  while (auto frame = channel_.next()) handle(*frame);
  if (result == ReadResult::closed) {
    listening_ = false;
    ending_ = true;
  }
}

void Supervisor::handle(const Frame& frame) {
  switch (static_cast<Order>(frame.kind)) {
    case Order::start:
      if (auto order = parse_start(frame.payload); order && !child_) {
        start(std::move(*order));
        return;
      }
      break;
    case Order::go:
      if (child_ && child_->gate) {
        go();
        return;
      }
      break;
    case Order::clean_up:
      ending_ = true;
      return;
  }
  report_failure("protocol", EPROTO);
}

void Supervisor::start(StartOrder order) {
  order_ = std::move(order);
  try {
    if (!order_.cgroup.empty()) cgroup_ = Cgroup::make(order_.cgroup);
    const std::array<int, 3> streams{streams_[0].get(), streams_[1].get(), streams_[2].get()};
    child_ = fork_gated(order_, cgroup_ ? &*cgroup_ : nullptr, streams);
    no_children_ = false;
    // The child has its own copies now; ours would keep its pipes open after it is gone.
    for (UniqueFd& stream : streams_) stream.reset();
    if (cgroup_ && !child_->in_cgroup) {
      static_cast<void>(cgroup_->remove());
      cgroup_.reset();
    }
    const auto identity = identify(child_->pid);
    if (!identity) {
      report_failure("identify", ESRCH);
      return;
    }
    Payload report;
    report.number(static_cast<std::uint32_t>(child_->pid)).text(identity->scheme).text(identity->token);
    report.wide(cgroup_ ? cgroup_->inode() : 0);
    channel_.send(Report::gated, report);
  } catch (const SystemError& error) {
    report_failure(error.step(), error.code());
  }
}

void Supervisor::go() {
  if (!open_gate(*child_)) report_failure("gate", EPIPE);
}

void Supervisor::finish_exec() {
  if (!child_ || !child_->status) return;
  const auto failure = read_status(child_->status);
  child_->status.reset();
  if (failure) {
    report_failure(failure->step, failure->code);
  } else if (!child_->gate) {
    channel_.send(Report::started);
  }
}

void Supervisor::report_failure(const std::string& step, int code) {
  channel_.send(Report::failed, Payload().text(step).text(errno_name(code)));
  ending_ = true;
}

bool Supervisor::read_signals() {
  bool end = false;
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo != SIGCHLD) end = true;
  }
  reap();
  return end;
}

/// Takes the exit of the child and of every orphan that came up to us.
void Supervisor::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) {
      no_children_ = pid < 0 && errno == ECHILD;
      return;
    }
    if (!child_ || pid != child_->pid || child_exited_) continue;
    child_exited_ = true;
    // The daemon learns how the start went before it learns of the end.
    finish_exec();
    Payload report;
    report.number(WIFEXITED(status) ? 1 : 0);
    report.number(static_cast<std::uint32_t>(WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
    channel_.send(Report::exited, report);
  }
}

/// No children at all means no descendants: we are their subreaper, so an orphan becomes our child the moment its
/// parent dies.
bool Supervisor::empty() const { return no_children_ && !(cgroup_ && cgroup_->populated()); }

int Supervisor::clean_up() {
  const auto begin = Clock::now();
  const auto deadline = begin + std::chrono::milliseconds(order_.cleanup_ms);
  if (child_) child_->gate.reset();
  for (UniqueFd& stream : streams_) stream.reset();
  reap();
  if (!empty()) signal_descendants(SIGTERM);
  const auto grace_end = std::min(deadline, begin + std::chrono::milliseconds(order_.grace_ms));
  while (!empty() && Clock::now() < grace_end) wait_for_change(grace_end);
  kill_until(deadline);

  if (!empty()) {
    Payload report;
    const auto survivors = describe_descendants(max_survivors);
    report.number(static_cast<std::uint32_t>(survivors.size()));
    for (const std::string& line : survivors) report.text(line);
    leave_witness("not-empty\n");
    channel_.send(Report::not_empty, report);
    return 1;
  }
  // The kernel may hold a cgroup for a moment after its last process is gone.
  for (int attempt = 0; cgroup_ && attempt < remove_attempts && !cgroup_->remove(); ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  leave_witness("empty\n");
  channel_.send(Report::empty);
  return 0;
}

void Supervisor::kill_until(Clock::time_point deadline) {
  while (!empty() && Clock::now() < deadline) {
    if (cgroup_) cgroup_->kill();
    signal_descendants(SIGKILL);
    wait_for_change(std::min(deadline, Clock::now() + sweep_interval));
  }
}

void Supervisor::wait_for_change(Clock::time_point until) {
  pollfd entry{signals_.get(), POLLIN, 0};
  if (poll(&entry, 1, milliseconds_until(until)) > 0) {
    read_signals();
  } else {
    reap();
  }
}

/// With a cgroup anybody can see later that the boundary is empty. Without one only we know, so we write it down for a
/// daemon that did not live to hear it.
void Supervisor::leave_witness(const char* outcome) const {
  if (cgroup_ || order_.witness.empty()) return;
  const UniqueFd fd(open(order_.witness.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return;
  const std::string text = outcome;
  // Cut short or missing, it proves nothing, and the daemon takes it for that.
  [[maybe_unused]] const auto written = write(fd.get(), text.data(), text.size());
}

/// Stays until the daemon has read the last report, or is gone. Were we to leave at once, an order that it sends
/// meanwhile would break the channel, and the report in it would be lost.
void Supervisor::await_hearing() {
  shutdown(channel_.fd(), SHUT_WR);
  while (listening_) {
    std::array<pollfd, 2> entries{pollfd{channel_.fd(), POLLIN, 0}, pollfd{signals_.get(), POLLIN, 0}};
    if (poll(entries.data(), entries.size(), -1) < 0) continue;
    if (entries[1].revents != 0 && read_signals()) return;
    if (entries[0].revents != 0) listening_ = channel_.read() == ReadResult::more;
  }
}

}  // namespace bridle::supervisor
