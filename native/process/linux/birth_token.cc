#include <sys/stat.h>

#include "../process.h"
#include "../system_error.h"
#include "pidfd.h"
#include "proc.h"

namespace bridle {
namespace {

constexpr const char* pidfs_scheme = "pidfs";
constexpr const char* starttime_scheme = "starttime";

const std::string& boot_id() {
  static const std::string id = [] {
    auto text = read_small_file("/proc/sys/kernel/random/boot_id");
    if (!text) throw SystemError(ENOENT, "read boot_id");
    while (!text->empty() && text->back() == '\n') text->pop_back();
    return *text;
  }();
  return id;
}

std::string pid_namespace() {
  struct stat info{};
  if (stat("/proc/self/ns/pid", &info) != 0) throw_errno("stat /proc/self/ns/pid");
  return std::to_string(info.st_ino);
}

std::string pidfs_token(int pidfd) {
  struct stat info{};
  if (fstat(pidfd, &info) != 0) throw_errno("fstat pidfd");
  return boot_id() + ":" + std::to_string(info.st_ino);
}

/// Empty when the process is gone.
std::string starttime_token(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat ? boot_id() + ":" + pid_namespace() + ":" + stat->start_time : std::string();
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

}  // namespace

std::optional<ProcessIdentity> identify(std::int64_t pid) {
  const UniqueFd pidfd = open_living(pid);
  if (!pidfd) return std::nullopt;
  if (on_pidfs(pidfd.get())) return ProcessIdentity{pid, pidfs_token(pidfd.get()), pidfs_scheme};
  const std::string token = starttime_token(static_cast<pid_t>(pid));
  // The number could have passed to another process before /proc was read; it cannot while the pidfd's process lives.
  if (token.empty() || has_exited(pidfd.get())) return std::nullopt;
  return ProcessIdentity{pid, token, starttime_scheme};
}

SignalResult signal_process(const ProcessIdentity& identity, int signal) {
  const UniqueFd pidfd = open_living(identity.pid);
  if (!pidfd) return SignalResult::gone;
  std::string token;
  if (identity.scheme == pidfs_scheme) {
    if (on_pidfs(pidfd.get())) token = pidfs_token(pidfd.get());
  } else if (identity.scheme == starttime_scheme) {
    token = starttime_token(static_cast<pid_t>(identity.pid));
    if (has_exited(pidfd.get())) return SignalResult::gone;
  }
  if (token.empty() || token != identity.token) return SignalResult::mismatch;
  if (send_signal(pidfd.get(), signal) == 0) return SignalResult::sent;
  if (errno == ESRCH) return SignalResult::gone;
  // Signal 0 only asks: a process of another user is there all the same.
  if (errno == EPERM && signal == 0) return SignalResult::sent;
  throw_errno("pidfd_send_signal");
}

}  // namespace bridle
