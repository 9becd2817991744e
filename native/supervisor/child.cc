#include "child.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "../process/system_error.h"

namespace bridle::supervisor {
namespace {

enum class Step : std::uint8_t { setup = 1, chdir = 2, exec = 3 };

struct Status {
  Step step{};
  int code = 0;
};

constexpr int gate_slot = 3;
constexpr int status_slot = 4;
constexpr int first_free_slot = 5;
constexpr int sent_away = 125;

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Pipe make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

[[noreturn]] void fail(Step step) {
  const Status status{step, errno};
  [[maybe_unused]] const auto written = write(status_slot, &status, sizeof(status));
  _exit(sent_away);
}

/// Moves the descriptors above every slot first, so that placing one never overwrites another.
bool place_descriptors(const std::array<int, 3>& streams, int gate, int status) {
  std::array<int, 5> moved{streams[0], streams[1], streams[2], gate, status};
  constexpr int safe = 32;
  for (int& fd : moved) {
    fd = fcntl(fd, F_DUPFD, safe);
    if (fd < 0) return false;
  }
  for (std::size_t slot = 0; slot < moved.size(); ++slot) {
    if (dup2(moved.at(slot), static_cast<int>(slot)) < 0) return false;
  }
  if (close_range(first_free_slot, ~0U, 0) != 0) return false;
  return fcntl(gate_slot, F_SETFD, FD_CLOEXEC) == 0 && fcntl(status_slot, F_SETFD, FD_CLOEXEC) == 0;
}

/// Every signal, the two included that the C library keeps to itself and leaves ignored after posix_spawn.
void reset_signals() {
  // All zero is SIG_DFL in the kernel's own struct, whose last part is the mask.
  struct KernelAction {
    unsigned long handler = 0;
    unsigned long flags = 0;
    unsigned long restorer = 0;
    std::uint64_t mask = 0;
  };
  const KernelAction default_action;
  constexpr int last_signal = 64;
  for (int number = 1; number <= last_signal; ++number) {
    syscall(SYS_rt_sigaction, number, &default_action, nullptr, sizeof(default_action.mask));
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

[[noreturn]] void run_child(const StartOrder& order, pid_t supervisor, const std::array<int, 3>& streams, int gate,
                            int status) {
  if (!place_descriptors(streams, gate, status)) _exit(sent_away);
  if (setsid() < 0) fail(Step::setup);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail(Step::setup);
  // The supervisor may have died before the death signal was set.
  if (getppid() != supervisor) _exit(sent_away);
  reset_signals();
  char go = 0;
  ssize_t size = 0;
  do {
    size = read(gate_slot, &go, 1);
  } while (size < 0 && errno == EINTR);
  if (size != 1) _exit(sent_away);
  const auto argv = pointers(order.argv);
  const auto env = pointers(order.env);
  if (chdir(order.cwd.c_str()) != 0) fail(Step::chdir);
  execve(argv.front(), argv.data(), env.data());
  fail(Step::exec);
}

/// Like fork, but the child is born in the cgroup; -1 when the kernel or a filter refuses.
pid_t fork_into(const Cgroup& cgroup) {
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<decltype(arguments.cgroup)>(cgroup.fd());
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

}  // namespace

GatedChild fork_gated(const StartOrder& order, const Cgroup* cgroup, const std::array<int, 3>& streams) {
  Pipe gate = make_pipe();
  Pipe status = make_pipe();
  const pid_t supervisor = getpid();
  GatedChild child;
  pid_t pid = cgroup == nullptr ? -1 : fork_into(*cgroup);
  child.in_cgroup = pid > 0;
  if (pid < 0) pid = fork();
  if (pid < 0) throw_errno("fork");
  if (pid == 0) run_child(order, supervisor, streams, gate.read_end.get(), status.write_end.get());
  child.pid = pid;
  child.gate = std::move(gate.write_end);
  child.status = std::move(status.read_end);
  if (cgroup != nullptr && !child.in_cgroup) child.in_cgroup = cgroup->adopt(pid);
  return child;
}

bool open_gate(GatedChild& child) {
  const char go = 1;
  const bool opened = write(child.gate.get(), &go, 1) == 1;
  child.gate.reset();
  return opened;
}

std::optional<StartFailure> read_status(const UniqueFd& status) {
  Status failure;
  ssize_t size = 0;
  do {
    size = read(status.get(), &failure, sizeof(failure));
  } while (size < 0 && errno == EINTR);
  if (size != static_cast<ssize_t>(sizeof(failure))) return std::nullopt;
  switch (failure.step) {
    case Step::chdir:
      return StartFailure{"chdir", failure.code};
    case Step::exec:
      return StartFailure{"exec", failure.code};
    case Step::setup:
      break;
  }
  return StartFailure{"setup", failure.code};
}

}  // namespace bridle::supervisor
