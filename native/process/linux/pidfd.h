#pragma once

#include <sys/types.h>

#include "unique_fd.h"

// Kernel 5.4 is the oldest with all of pidfd_open, pidfd_send_signal and waitid(P_PIDFD).
namespace bridle {

/// Invalid, with errno set, when there is no such process or no descriptor left.
UniqueFd open_pidfd(pid_t pid);

/// 0, or -1 with errno set (ESRCH: the process was reaped).
int send_signal(int pidfd, int signal);

/// True once all threads of the process ended, a zombie included.
bool has_exited(int pidfd);

/// The pidfd lives on pidfs (kernel 6.9 and later), whose inode numbers are unique for the life of the boot.
bool on_pidfs(int pidfd);

}  // namespace bridle
