#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../process/linux/unique_fd.h"

namespace bridle::supervisor {

/// One cgroup (version 2) that holds the processes of one boundary.
class Cgroup {
 public:
  /// Makes the directory; nothing when that is refused or it exists already.
  static std::optional<Cgroup> make(const std::string& path);

  [[nodiscard]] int fd() const { return directory_.get(); }
  [[nodiscard]] std::uint64_t inode() const { return inode_; }
  /// Moves a process that was born outside into the cgroup.
  [[nodiscard]] bool adopt(int pid) const;
  /// SIGKILL to every process in it and below it, without a race against forks.
  void kill() const;
  [[nodiscard]] bool populated() const;
  /// Removes it with the cgroups that processes made below it; false while one is busy.
  [[nodiscard]] bool remove() const;

 private:
  Cgroup(std::string path, UniqueFd directory, std::uint64_t inode);

  std::string path_;
  UniqueFd directory_;
  std::uint64_t inode_;
};

}  // namespace bridle::supervisor
