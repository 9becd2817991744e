#pragma once

#include <string>
#include <vector>

namespace bridle::supervisor {

/// Sends a signal to every living descendant of this process, each through a pidfd that was shown to be one. One pass:
/// what is born meanwhile is found by the next.
void signal_descendants(int signal);

/// One line for each living descendant, at most `limit`.
std::vector<std::string> describe_descendants(std::size_t limit);

}  // namespace bridle::supervisor
