#pragma once

#include <sys/types.h>

namespace bridle::fuse {

/// Process of a thread. The kernel names the calling thread; people and policies know processes.
/// @returns 0 when there is no such thread in our PID namespace
pid_t process_of_thread(pid_t thread);

}  // namespace bridle::fuse
