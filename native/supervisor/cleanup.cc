#include "cleanup.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>
#include <utility>

#include "sweep.h"

namespace bridle::supervisor {
namespace {

constexpr auto sweep_interval = std::chrono::milliseconds(5);
constexpr auto look_interval = std::chrono::milliseconds(1);
/// Who was told to end and does is heard of within this time, one after another.
constexpr auto quiet = std::chrono::milliseconds(25);
/// The kernel has this long to end what is in the cgroup before we look for what is not.
constexpr auto kernel_kill = std::chrono::milliseconds(100);
constexpr int remove_attempts = 200;
constexpr std::size_t max_survivors = 32;

int milliseconds_until(std::chrono::steady_clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000));
}

}  // namespace

bool take_signals(int signals) {
  bool end = false;
  signalfd_siginfo info{};
  while (read(signals, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo != SIGCHLD) end = true;
  }
  return end;
}

Cleanup::Cleanup(const StartOrder& order, const Boundary& boundary, Channel& channel, Senses senses,
                 ExitHandler on_exit)
    : order_(order), boundary_(boundary), channel_(channel), senses_(senses), on_exit_(std::move(on_exit)) {}

void Cleanup::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) {
      no_children_ = pid < 0 && errno == ECHILD;
      return;
    }
    on_exit_(pid, status);
  }
}

/// No children at all means no descendants: we are their subreaper, so an orphan becomes our child the moment its
/// parent dies.
bool Cleanup::empty() const { return no_children_ && !boundary_.populated(); }

bool Cleanup::run() {
  const auto deadline = Clock::now() + std::chrono::milliseconds(order_.cleanup_ms);
  reap();
  if (!empty()) terminate(deadline);
  kill_until(deadline);
  const bool emptied = empty();
  if (emptied) remove_boundary();
  return emptied;
}

int Cleanup::report(bool emptied) {
  // With a cgroup anybody can see later that the boundary is empty. Without one only we know, so we write it down for
  // a daemon that did not live to hear it.
  if (!boundary_.contains()) leave_witness(emptied ? "empty\n" : "not-empty\n");
  if (emptied) {
    channel_.send(Report::empty);
  } else {
    report_survivors();
  }
  await_hearing();
  return emptied ? 0 : 1;
}

/// A list of a cgroup costs much less than a walk through /proc, which would compete with the dying for the processor.
/// So the walk, for descendants that got out of the cgroup, waits until the rest is gone or takes its time.
void Cleanup::terminate(Clock::time_point deadline) {
  const auto grace = std::chrono::milliseconds(order_.grace_ms);
  const auto begin = Clock::now();
  const auto grace_end = std::min(deadline, begin + grace);
  if (boundary_.contains()) {
    signal_members(boundary_, SIGTERM);
    settle(std::min(deadline, begin + grace / 2));
  }
  if (!empty()) signal_outsiders(boundary_, SIGTERM);
  while (!empty() && Clock::now() < grace_end) wait_for_change(grace_end);
}

void Cleanup::kill_until(Clock::time_point deadline) {
  if (boundary_.contains() && !empty() && Clock::now() < deadline) {
    boundary_.kill();
    settle(std::min(deadline, Clock::now() + kernel_kill));
  }
  while (!empty() && Clock::now() < deadline) {
    boundary_.kill();
    kill_descendants();
    wait_for_change(std::min(deadline, Clock::now() + sweep_interval));
  }
}

void Cleanup::settle(Clock::time_point until) {
  while (!empty() && Clock::now() < until && wait_for_change(std::min(until, Clock::now() + quiet))) {
  }
}

bool Cleanup::wait_for_change(Clock::time_point until) {
  // Nothing tells us when the cgroup is done with the last of its dead.
  if (no_children_) until = std::min(until, Clock::now() + look_interval);
  pollfd entry{senses_.signals, POLLIN, 0};
  const bool changed = poll(&entry, 1, milliseconds_until(until)) > 0;
  if (changed) take_signals(senses_.signals);
  reap();
  return changed;
}

/// The kernel may hold a cgroup for a moment after its last process is gone.
void Cleanup::remove_boundary() const {
  for (int attempt = 0; attempt < remove_attempts && !boundary_.remove(); ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Cleanup::report_survivors() const {
  Payload report;
  const auto survivors = describe_descendants(max_survivors);
  report.number(static_cast<std::uint32_t>(survivors.size()));
  for (const std::string& line : survivors) report.text(line);
  channel_.send(Report::not_empty, report);
}

void Cleanup::leave_witness(const char* outcome) const {
  if (order_.witness.empty()) return;
  const UniqueFd fd(open(order_.witness.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return;
  const std::string text = outcome;
  // Cut short or missing, it proves nothing, and the daemon takes it for that.
  [[maybe_unused]] const auto written = write(fd.get(), text.data(), text.size());
}

/// Stays until the daemon has read the last report, or is gone: somebody else may hold its end of the channel. Were we
/// to leave at once, an order that it sends meanwhile would break the channel, and the report in it would be lost.
void Cleanup::await_hearing() {
  shutdown(channel_.fd(), SHUT_WR);
  for (;;) {
    std::array<pollfd, 3> entries{pollfd{channel_.fd(), POLLIN, 0}, pollfd{senses_.signals, POLLIN, 0},
                                  pollfd{senses_.daemon, POLLIN, 0}};
    if (poll(entries.data(), entries.size(), -1) < 0) continue;
    if (entries[2].revents != 0) return;
    if (entries[1].revents != 0 && take_signals(senses_.signals)) return;
    if (entries[0].revents != 0 && channel_.read() == ReadResult::closed) return;
  }
}

}  // namespace bridle::supervisor
