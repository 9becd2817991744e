#include "child.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "../process/linux/landlock.h"
#include "../process/system_error.h"

namespace bridle::supervisor {
namespace {

constexpr int gate_slot = 3;
constexpr int first_free_slot = 4;
constexpr int sent_away = 125;

[[noreturn]] void fail(const std::string& step, int code = errno) {
  Channel(gate_slot).send_failure(step, code);
  _exit(sent_away);
}

/// Moves the descriptors above every slot first, so that placing one never overwrites another.
bool place_descriptors(const std::array<int, 3>& streams, int gate) {
  std::array<int, 4> moved{streams[0], streams[1], streams[2], gate};
  constexpr int safe = 32;
  for (int& fd : moved) {
    fd = fcntl(fd, F_DUPFD, safe);
    if (fd < 0) return false;
  }
  for (std::size_t slot = 0; slot < moved.size(); ++slot) {
    if (dup2(moved.at(slot), static_cast<int>(slot)) < 0) return false;
  }
  if (close_range(first_free_slot, ~0U, 0) != 0) return false;
  return fcntl(gate_slot, F_SETFD, FD_CLOEXEC) == 0;
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

/// Dies with the supervisor's reaper. A change of credentials clears this, so it is done again after one.
void die_with(pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail("setup");
  // It may have died before the death signal was set.
  if (getppid() != parent) _exit(sent_away);
}

void await_gate() {
  char go = 0;
  ssize_t size = 0;
  do {
    size = read(gate_slot, &go, 1);
  } while (size < 0 && errno == EINTR);
  if (size != 1) _exit(sent_away);
}

/// The terminal belongs to whoever uses it, as after a login.
void take_terminal(const StartOrder& order) {
  if (ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0) fail("terminal");
  if (order.credentials && fchown(STDIN_FILENO, order.credentials->uid, static_cast<gid_t>(-1)) != 0) {
    fail("terminal");
  }
}

void set_rlimits(const StartOrder& order) {
  for (const Rlimit& limit : order.rlimits) {
    const rlimit value{limit.value, limit.value};
    if (setrlimit(static_cast<__rlimit_resource_t>(limit.resource), &value) != 0) fail("rlimits");
  }
}

UniqueFd make_rules(const Paths& paths) {
  try {
    return make_landlock_rules(paths.read_only, paths.read_write);
  } catch (const SystemError& error) {
    fail(error.step(), error.code());
  }
}

void change_credentials(const Credentials& credentials, pid_t parent) {
  if (setgroups(credentials.groups.size(), credentials.groups.data()) != 0) fail("credentials");
  if (setresgid(credentials.gid, credentials.gid, credentials.gid) != 0) fail("credentials");
  if (setresuid(credentials.uid, credentials.uid, credentials.uid) != 0) fail("credentials");
  die_with(parent);
}

[[noreturn]] void run_child(const StartOrder& order, pid_t parent, const std::array<int, 3>& streams, int gate) {
  if (!place_descriptors(streams, gate)) _exit(sent_away);
  if (setsid() < 0) fail("setup");
  die_with(parent);
  reset_signals();
  await_gate();
  // Limits and rules are made with the daemon's rights, then those are given up, then the program is looked for with
  // the rights that it will have.
  if (order.terminal) take_terminal(order);
  set_rlimits(order);
  UniqueFd rules;
  if (order.paths) rules = make_rules(*order.paths);
  if (order.credentials) change_credentials(*order.credentials, parent);
  if (order.no_new_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("privileges");
  if (rules && restrict_to(rules) != 0) fail("paths");
  const auto argv = pointers(order.argv);
  const auto env = pointers(order.env);
  if (chdir(order.cwd.c_str()) != 0) fail("chdir");
  execve(argv.front(), argv.data(), env.data());
  fail("exec");
}

/// Like fork, but the child is born in the cgroup; -1 when the kernel or a filter refuses.
pid_t fork_into(int cgroup) {
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<decltype(arguments.cgroup)>(cgroup);
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

}  // namespace

GatedChild fork_gated(const StartOrder& order, int cgroup, const std::array<int, 3>& streams, int gate) {
  const pid_t parent = getpid();
  GatedChild child;
  pid_t pid = cgroup < 0 ? -1 : fork_into(cgroup);
  child.born_inside = pid > 0;
  if (pid < 0) pid = fork();
  if (pid < 0) throw_errno("fork");
  if (pid == 0) run_child(order, parent, streams, gate);
  child.pid = pid;
  return child;
}

}  // namespace bridle::supervisor
