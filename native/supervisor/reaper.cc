#include "reaper.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "../process/process.h"
#include "../process/system_error.h"

namespace bridle::supervisor {
namespace {

void add_identity(Payload& report, pid_t pid, bool start_time) {
  const auto identity = identify(pid, start_time ? starttime_scheme : "");
  if (!identity) throw SystemError(ESRCH, "identify");
  report.number(static_cast<std::uint32_t>(pid)).text(identity->scheme).text(identity->token);
}

}  // namespace

Reaper::Reaper(const StartOrder& order, const Boundary& boundary, Channel& channel, ChildEnds ends, Senses senses)
    : order_(order),
      boundary_(boundary),
      channel_(channel),
      ends_(std::move(ends)),
      senses_(senses),
      cleanup_(order, boundary, channel, senses, [this](pid_t pid, int status) { child_exited(pid, status); }) {}

int Reaper::run() {
  start();
  // Orders may have come together with the start.
  while (auto frame = channel_.next()) handle(*frame);
  while (!ending_) serve();
  ends_.close();
  const bool emptied = cleanup_.run();
  if (terminal_) terminal_->finish();
  report_exit();
  return cleanup_.report(emptied);
}

void Reaper::start() {
  try {
    if (order_.terminal) terminal_.emplace(*order_.terminal);
    child_ = fork_gated(order_, boundary_.fd(), child_streams(), ends_.gate.get());
    if (terminal_) terminal_->connect(std::move(ends_.streams[0]), std::move(ends_.streams[1]));
    // The child has its own copies now; ours would keep its pipes open after it is gone.
    ends_.close();
    boundary_.adopt(child_->pid, child_->born_inside);
    Payload report;
    add_identity(report, child_->pid, order_.start_time_tokens);
    add_identity(report, getpid(), order_.start_time_tokens);
    channel_.send(Report::gated, report.wide(boundary_.inode()));
  } catch (const SystemError& error) {
    fail(error.step(), error.code());
  }
}

std::array<int, 3> Reaper::child_streams() {
  if (terminal_) return {terminal_->slave(), terminal_->slave(), terminal_->slave()};
  return {ends_.streams[0].get(), ends_.streams[1].get(), ends_.streams[2].get()};
}

void Reaper::serve() {
  constexpr pollfd nothing{-1, 0, 0};
  std::array<pollfd, 5> entries{pollfd{channel_.fd(), POLLIN, 0}, pollfd{senses_.signals, POLLIN, 0}, nothing, nothing,
                                nothing};
  if (terminal_) {
    const auto interests = terminal_->interests();
    std::copy(interests.begin(), interests.end(), entries.begin() + 2);
  }
  if (poll(entries.data(), entries.size(), -1) < 0) return;
  if (entries[1].revents != 0) {
    if (take_signals(senses_.signals)) ending_ = true;
    cleanup_.reap();
  }
  if (terminal_) terminal_->move();
  if (unreported_exit_ && (!terminal_ || terminal_->drained())) report_exit();
  if (entries[0].revents != 0) read_control();
}

void Reaper::read_control() {
  const ReadResult result = channel_.read();
  while (auto frame = channel_.next()) handle(*frame);
  if (result == ReadResult::closed) ending_ = true;
}

void Reaper::handle(const Frame& frame) {
  switch (static_cast<Order>(frame.kind)) {
    case Order::start:
      break;
    case Order::clean_up:
      ending_ = true;
      return;
    case Order::resize:
      resize(frame);
      return;
  }
  fail("protocol", EPROTO);
}

void Reaper::fail(const std::string& step, int code) {
  channel_.send_failure(step, code);
  ending_ = true;
}

void Reaper::resize(const Frame& frame) {
  if (const auto size = parse_resize(frame.payload); size && terminal_) terminal_->resize(*size);
}

void Reaper::child_exited(pid_t pid, int status) {
  if (!child_ || pid != child_->pid || child_exited_) return;
  child_exited_ = true;
  unreported_exit_ = status;
}

void Reaper::report_exit() {
  if (!unreported_exit_) return;
  const int status = *std::exchange(unreported_exit_, std::nullopt);
  Payload report;
  report.number(WIFEXITED(status) ? 1 : 0);
  report.number(static_cast<std::uint32_t>(WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
  channel_.send(Report::exited, report);
}

}  // namespace bridle::supervisor
