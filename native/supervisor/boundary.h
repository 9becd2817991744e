#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cgroup.h"
#include "protocol.h"

namespace bridle::supervisor {

/// The cgroups of one lease: the one that contains, when there is one, and those that limit.
class Boundary {
 public:
  /// Makes them. Throws SystemError; what was made is removed then.
  explicit Boundary(const StartOrder& order);

  /// Descriptor of the cgroup to be born in; -1 without one.
  [[nodiscard]] int fd() const { return cgroup_ ? cgroup_->fd() : -1; }
  [[nodiscard]] bool contains() const { return cgroup_.has_value(); }
  /// 0 without a cgroup.
  [[nodiscard]] std::uint64_t inode() const { return cgroup_ ? cgroup_->inode() : 0; }
  /// Moves the child into every cgroup that it was not born in. Throws SystemError.
  void adopt(int pid, bool born_inside) const;
  void kill() const;
  /// False without a cgroup.
  [[nodiscard]] bool populated() const;
  /// The processes in the cgroup; none without one.
  [[nodiscard]] std::vector<pid_t> processes() const;
  /// False while the kernel holds one of them.
  [[nodiscard]] bool remove() const;

 private:
  void apply(const Limit& limit, const std::string& own);

  std::optional<Cgroup> cgroup_;
  std::vector<Cgroup> limits_;
};

}  // namespace bridle::supervisor
