#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "../process/linux/unique_fd.h"

namespace bridle::supervisor {

/// One cgroup, of either version. `kill` and `populated` need version 2.
class Cgroup {
 public:
  /// Makes the directory. Throws SystemError whose step names it.
  explicit Cgroup(std::string path);

  [[nodiscard]] int fd() const { return directory_.get(); }
  [[nodiscard]] std::uint64_t inode() const { return inode_; }
  /// Writes a setting. Throws SystemError whose step names the file.
  void set(const std::string& file, const std::string& value) const;
  /// Moves a process that was born outside into the cgroup; false with errno set when that is refused.
  [[nodiscard]] bool adopt(int pid) const;
  /// SIGKILL to every process in it and below it, without a race against forks.
  void kill() const;
  [[nodiscard]] bool populated() const;
  /// The processes in it and below it, as they are listed one after another.
  [[nodiscard]] std::vector<pid_t> processes() const;
  /// Removes it with the cgroups that processes made below it; false while one is busy.
  [[nodiscard]] bool remove() const;

 private:
  std::string path_;
  UniqueFd directory_;
  std::uint64_t inode_ = 0;
};

}  // namespace bridle::supervisor
