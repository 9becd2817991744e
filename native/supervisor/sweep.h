#pragma once

#include <string>
#include <vector>

#include "boundary.h"

namespace bridle::supervisor {

// One pass each, and every signal through a pidfd that was shown to belong: what is born meanwhile is found by the
// next.

/// Sends a signal to every process in the boundary's cgroup.
void signal_members(const Boundary& boundary, int signal);

/// Sends a signal to every living descendant of this process that is not in the boundary's cgroup.
void signal_outsiders(const Boundary& boundary, int signal);

/// Kills every living descendant of this process. Each is stopped before its children are looked for, so that it does
/// not start others in their place.
void kill_descendants();

/// One line for each living descendant, at most `limit`.
std::vector<std::string> describe_descendants(std::size_t limit);

}  // namespace bridle::supervisor
