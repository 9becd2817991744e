#include "boundary.h"

#include <string>

#include "../process/system_error.h"

namespace bridle::supervisor {

Boundary::Boundary(const StartOrder& order) {
  try {
    if (!order.cgroup.empty()) cgroup_.emplace(order.cgroup);
    for (const Limit& limit : order.limits) apply(limit, order.cgroup);
  } catch (...) {
    static_cast<void>(remove());
    throw;
  }
}

void Boundary::apply(const Limit& limit, const std::string& own) {
  if (limit.path != own) limits_.emplace_back(limit.path);
  const Cgroup& target = limit.path == own ? *cgroup_ : limits_.back();
  for (const Setting& setting : limit.settings) target.set(setting.file, setting.value);
}

void Boundary::adopt(int pid, bool born_inside) const {
  if (cgroup_ && !born_inside && !cgroup_->adopt(pid)) throw_errno("cgroup");
  for (const Cgroup& limit : limits_) {
    if (!limit.adopt(pid)) throw_errno("limits");
  }
}

void Boundary::kill() const {
  if (cgroup_) cgroup_->kill();
}

bool Boundary::populated() const { return cgroup_ && cgroup_->populated(); }

std::vector<pid_t> Boundary::processes() const { return cgroup_ ? cgroup_->processes() : std::vector<pid_t>(); }

bool Boundary::remove() const {
  bool removed = !cgroup_ || cgroup_->remove();
  for (const Cgroup& limit : limits_) removed = limit.remove() && removed;
  return removed;
}

}  // namespace bridle::supervisor
