#include "supervisor.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

#include "../process/linux/pidfd.h"
#include "../process/system_error.h"

namespace bridle::supervisor {
namespace {

using Clock = std::chrono::steady_clock;

/// A reaper that was told to end and has not this long after its own deadline is killed.
constexpr auto overdue = std::chrono::milliseconds(1000);
constexpr int not_started = 1;

}  // namespace

Supervisor::Supervisor(int control, ChildEnds child, Senses senses)
    : channel_(control), child_(std::move(child)), senses_(senses) {}

int Supervisor::run() {
  const auto order = await_order();
  if (!order) return not_started;
  std::optional<Boundary> boundary;
  try {
    boundary.emplace(*order);
  } catch (const SystemError& error) {
    channel_.send_failure(error.step(), error.code());
    return not_started;
  }
  const pid_t supervisor = getpid();
  const pid_t reaper = fork();
  if (reaper < 0) {
    channel_.send_failure("fork", errno);
    static_cast<void>(boundary->remove());
    return not_started;
  }
  if (reaper > 0) return watch(reaper, *order, *boundary);
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) throw_errno("prctl PR_SET_PDEATHSIG");
  // The supervisor may have died before the death signal was set; nothing has been started yet.
  if (getppid() != supervisor) {
    static_cast<void>(boundary->remove());
    return not_started;
  }
  return reap_and_report(*order, *boundary);
}

std::optional<StartOrder> Supervisor::await_order() {
  for (;;) {
    if (const auto frame = channel_.next()) {
      if (static_cast<Order>(frame->kind) == Order::start) {
        if (auto order = parse_start(frame->payload)) return order;
      }
      channel_.send_failure("protocol", EPROTO);
      return std::nullopt;
    }
    std::array<pollfd, 2> entries{pollfd{channel_.fd(), POLLIN, 0}, pollfd{senses_.signals, POLLIN, 0}};
    if (poll(entries.data(), entries.size(), -1) < 0) continue;
    if (entries[1].revents != 0 && take_signals(senses_.signals)) return std::nullopt;
    if (entries[0].revents != 0 && channel_.read() == ReadResult::closed) return std::nullopt;
  }
}

int Supervisor::reap_and_report(const StartOrder& order, const Boundary& boundary) {
  // Being a subreaper is not inherited.
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) throw_errno("prctl PR_SET_CHILD_SUBREAPER");
  Reaper reaper(order, boundary, channel_, std::move(child_), senses_);
  return reaper.run();
}

int Supervisor::watch(pid_t reaper, const StartOrder& order, const Boundary& boundary) {
  child_.close();
  const UniqueFd pidfd = open_pidfd(reaper);
  std::optional<int> status;
  Cleanup cleanup(order, boundary, channel_, senses_, [&](pid_t pid, int wait_status) {
    if (pid == reaper) status = wait_status;
  });
  std::optional<Clock::time_point> deadline;
  for (;;) {
    cleanup.reap();
    if (status) break;
    const auto left = deadline ? std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count() : -1;
    if (deadline && left <= 0) send_signal(pidfd.get(), SIGKILL);
    pollfd entry{senses_.signals, POLLIN, 0};
    // After the deadline the reaper's end comes as a signal, too.
    poll(&entry, 1, deadline && left > 0 ? static_cast<int>(left) : -1);
    if (take_signals(senses_.signals) && !deadline) {
      send_signal(pidfd.get(), SIGTERM);
      deadline = Clock::now() + std::chrono::milliseconds(order.cleanup_ms) + overdue;
    }
  }
  if (WIFEXITED(*status) && WEXITSTATUS(*status) <= 1) return WEXITSTATUS(*status);
  return cleanup.report(cleanup.run());
}

}  // namespace bridle::supervisor
