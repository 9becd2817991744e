#include "pidfd.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace bridle {
namespace {

constexpr long pidfs_magic = 0x50494446;

}  // namespace

UniqueFd open_pidfd(pid_t pid) { return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

int send_signal(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

bool has_exited(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1 && (entry.revents & (POLLIN | POLLHUP)) != 0;
}

bool on_pidfs(int pidfd) {
  struct statfs info{};
  return fstatfs(pidfd, &info) == 0 && info.f_type == pidfs_magic;
}

}  // namespace bridle
