#include "sweep.h"

#include <unistd.h>

#include <functional>

#include "../process/linux/pidfd.h"
#include "../process/linux/proc.h"

namespace bridle::supervisor {
namespace {

/// Descendants below this depth come up to us as their ancestors die: a later pass finds them.
constexpr int max_depth = 64;

using Visitor = std::function<void(pid_t pid, int pidfd, const ProcessStat& stat)>;

void visit(pid_t parent, int threads, int parent_pidfd, int depth, const Visitor& visitor) {
  if (depth > max_depth) return;
  for (const pid_t pid : children_of(parent, threads)) {
    const UniqueFd pidfd = open_pidfd(pid);
    if (!pidfd) continue;
    const auto stat = read_process_stat(pid);
    // Between the listing and the pidfd the number may have passed to a stranger. It is ours when its parent is, and
    // the parent's number is still the parent's when the parent lives. A signal to a dead process goes nowhere.
    if (!stat || stat->parent != parent || (parent_pidfd >= 0 && has_exited(parent_pidfd))) continue;
    visit(pid, stat->threads, pidfd.get(), depth + 1, visitor);
    visitor(pid, pidfd.get(), *stat);
  }
}

}  // namespace

void signal_descendants(int signal) {
  visit(getpid(), 1, -1, 0, [signal](pid_t, int pidfd, const ProcessStat&) { send_signal(pidfd, signal); });
}

std::vector<std::string> describe_descendants(std::size_t limit) {
  std::vector<std::string> lines;
  visit(getpid(), 1, -1, 0, [&](pid_t pid, int pidfd, const ProcessStat& stat) {
    if (lines.size() >= limit || has_exited(pidfd)) return;
    lines.push_back("pid " + std::to_string(pid) + " (" + stat.command + ") state " + stat.state);
  });
  return lines;
}

}  // namespace bridle::supervisor
