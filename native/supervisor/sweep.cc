#include "sweep.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <utility>

#include "../process/linux/pidfd.h"
#include "../process/linux/proc.h"

namespace bridle::supervisor {
namespace {

/// Descendants below this depth come up to us as their ancestors die: a later pass finds them.
constexpr int max_depth = 64;
/// Pidfds held at once for one list: few enough for any limit on descriptors.
constexpr std::size_t batch_size = 64;

/// The process ids of a list at one moment.
class Pids {
 public:
  explicit Pids(std::vector<pid_t> list) : sorted_(std::move(list)) { std::sort(sorted_.begin(), sorted_.end()); }
  [[nodiscard]] bool has(pid_t pid) const { return std::binary_search(sorted_.begin(), sorted_.end(), pid); }

 private:
  std::vector<pid_t> sorted_;
};

/// Calls with each process of a list, and a pidfd of it.
///
/// Between a listing and its pidfd a number may pass to a stranger, so the list is read again when the pidfds are open.
/// A process that lives when it is sent a signal has kept its number since its pidfd was opened, so the number in the
/// second list means it. A signal to one that does not live goes nowhere.
void for_each_listed(const std::function<std::vector<pid_t>()>& list,
                     const std::function<void(pid_t pid, int pidfd)>& act) {
  const auto listed = list();
  for (std::size_t begin = 0; begin < listed.size(); begin += batch_size) {
    const std::size_t end = std::min(listed.size(), begin + batch_size);
    std::vector<std::pair<pid_t, UniqueFd>> opened;
    opened.reserve(end - begin);
    for (std::size_t at = begin; at < end; ++at) opened.emplace_back(listed[at], open_pidfd(listed[at]));
    const Pids still(list());
    for (const auto& [pid, pidfd] : opened) {
      if (pidfd && still.has(pid)) act(pid, pidfd.get());
    }
  }
}

struct Visitor {
  /// Called before the children of a process are looked for.
  std::function<void(int pidfd)> arrive;
  /// Called after they were visited.
  std::function<void(pid_t pid, int pidfd)> leave;
};

void visit(pid_t parent, int parent_pidfd, int depth, const Visitor& visitor) {
  if (depth > max_depth) return;
  const auto children = [&] {
    auto pids = children_of(parent);
    // The parent's number was still the parent's when the parent lives now.
    if (parent_pidfd >= 0 && has_exited(parent_pidfd)) pids.clear();
    return pids;
  };
  for_each_listed(children, [&](pid_t pid, int pidfd) {
    if (visitor.arrive) visitor.arrive(pidfd);
    visit(pid, pidfd, depth + 1, visitor);
    visitor.leave(pid, pidfd);
  });
}

void visit_descendants(const Visitor& visitor) { visit(getpid(), -1, 0, visitor); }

}  // namespace

void signal_members(const Boundary& boundary, int signal) {
  for_each_listed([&] { return boundary.processes(); }, [signal](pid_t, int pidfd) { send_signal(pidfd, signal); });
}

void signal_outsiders(const Boundary& boundary, int signal) {
  const Pids members(boundary.processes());
  visit_descendants({{}, [&](pid_t pid, int pidfd) {
                       // A member may have been born after the first look.
                       if (!members.has(pid) && !Pids(boundary.processes()).has(pid)) send_signal(pidfd, signal);
                     }});
}

void kill_descendants() {
  visit_descendants(
      {[](int pidfd) { send_signal(pidfd, SIGSTOP); }, [](pid_t, int pidfd) { send_signal(pidfd, SIGKILL); }});
}

std::vector<std::string> describe_descendants(std::size_t limit) {
  std::vector<std::string> lines;
  visit_descendants({{}, [&](pid_t pid, int pidfd) {
                       if (lines.size() >= limit) return;
                       const auto stat = read_process_stat(pid);
                       if (!stat || has_exited(pidfd)) return;
                       lines.push_back("pid " + std::to_string(pid) + " (" + stat->command + ") state " + stat->state);
                     }});
  return lines;
}

}  // namespace bridle::supervisor
