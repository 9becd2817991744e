#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bridle::fuse {

struct MountEntry {
  std::string mountpoint;
  std::string type;
  std::string source;
  unsigned int connection;  // minor number of the mount's device
};

/// FUSE mounts in the text of a mountinfo file (proc_pid_mountinfo(5)). Lines that are not as documented are left out.
std::vector<MountEntry> parse_mountinfo(std::string_view text);

/// FUSE mounts of this mount namespace. Touches none of them. @throws SystemError
std::vector<MountEntry> list_fuse_mounts();

}  // namespace bridle::fuse
