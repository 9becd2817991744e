#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "../process.h"
#include "../system_error.h"
#include "pidfd.h"
#include "proc.h"

namespace bridle {
namespace {

std::string read_boot_id() {
  auto text = read_small_file("/proc/sys/kernel/random/boot_id");
  if (!text) throw SystemError(ENOENT, "read boot_id");
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return *text;
}

/// Boot and PID namespace: where, and how long, a process id means anything.
const std::string& scope() {
  static const std::string text = [] {
    struct stat info{};
    if (stat("/proc/self/ns/pid", &info) != 0) throw_errno("stat /proc/self/ns/pid");
    return read_boot_id() + ":" + std::to_string(info.st_ino) + ":";
  }();
  return text;
}

std::string pidfs_token(int pidfd) {
  struct stat info{};
  if (fstat(pidfd, &info) != 0) throw_errno("fstat pidfd");
  return scope() + std::to_string(info.st_ino);
}

/// Empty when the process is gone.
std::string starttime_token(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat ? scope() + stat->start_time : std::string();
}

/// Invalid when no living process has this pid.
UniqueFd open_living(std::int64_t pid) {
  if (pid <= 0 || pid > INT32_MAX) return {};
  UniqueFd pidfd = open_pidfd(static_cast<pid_t>(pid));
  // EINVAL: the number belongs to a thread that leads no process.
  if (!pidfd && errno != ESRCH && errno != EINVAL) throw_errno("pidfd_open");
  if (pidfd && has_exited(pidfd.get())) pidfd.reset();
  return pidfd;
}

/// Whether one of the lines (or, in an environment, NUL-ended entries) of a process's file satisfies the predicate.
template <typename Predicate>
bool any_entry(pid_t pid, const char* file, char separator, const Predicate& predicate) {
  const auto text = read_small_file("/proc/" + std::to_string(pid) + "/" + file);
  if (!text) return false;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(separator), rest.size());
    if (predicate(rest.substr(0, end))) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

bool has_lease(pid_t pid, const std::string& lease) {
  if (lease.empty()) return false;
  const std::string wanted = "BRIDLE_LEASE=" + lease;
  return any_entry(pid, "environ", '\0', [&](std::string_view entry) { return entry == wanted; });
}

/// Cgroups of boundaries have names that nobody else gives, so the name is enough wherever the hierarchy is mounted.
bool in_cgroup(pid_t pid, const std::string& cgroup) {
  const std::string name = "/" + cgroup.substr(cgroup.rfind('/') + 1);
  if (name.size() == 1) return false;
  return any_entry(pid, "cgroup", '\n', [&](std::string_view line) {
    if (line.substr(0, 3) != "0::") return false;
    const auto at = line.find(name);
    if (at == std::string_view::npos) return false;
    const auto after = at + name.size();
    return after == line.size() || line[after] == '/';
  });
}

}  // namespace

std::optional<ProcessIdentity> identify(std::int64_t pid, const std::string& scheme) {
  const UniqueFd pidfd = open_living(pid);
  if (!pidfd) return std::nullopt;
  if (scheme != starttime_scheme && on_pidfs(pidfd.get())) {
    return ProcessIdentity{pid, pidfs_token(pidfd.get()), pidfs_scheme};
  }
  const std::string token = starttime_token(static_cast<pid_t>(pid));
  // The number could have passed to another process before /proc was read; it cannot while the pidfd's process lives.
  if (token.empty() || has_exited(pidfd.get())) return std::nullopt;
  return ProcessIdentity{pid, token, starttime_scheme};
}

SignalResult signal_process(const ProcessIdentity& identity, int signal, const std::optional<SignalProof>& proof) {
  // In another PID namespace, or another boot, the number means another process, or none.
  if (identity.token.rfind(scope(), 0) != 0) return SignalResult::mismatch;
  const UniqueFd pidfd = open_living(identity.pid);
  if (!pidfd) return SignalResult::gone;
  const auto pid = static_cast<pid_t>(identity.pid);
  std::string token;
  if (identity.scheme == pidfs_scheme) {
    if (on_pidfs(pidfd.get())) token = pidfs_token(pidfd.get());
  } else if (identity.scheme == starttime_scheme) {
    token = starttime_token(pid);
    const bool proven = signal == 0 || (proof && (has_lease(pid, proof->lease) || in_cgroup(pid, proof->cgroup)));
    // What was read from /proc is about the pidfd's process as long as that lives.
    if (has_exited(pidfd.get())) return SignalResult::gone;
    if (!proven) return SignalResult::mismatch;
  }
  if (token.empty() || token != identity.token) return SignalResult::mismatch;
  if (send_signal(pidfd.get(), signal) == 0) return SignalResult::sent;
  if (errno == ESRCH) return SignalResult::gone;
  // Signal 0 only asks: a process of another user is there all the same.
  if (errno == EPERM && signal == 0) return SignalResult::sent;
  throw_errno("pidfd_send_signal");
}

}  // namespace bridle
