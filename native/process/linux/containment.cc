#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "../process.h"
#include "../system_error.h"
#include "pidfd.h"
#include "proc.h"

namespace bridle {
namespace {

/// mountinfo writes space, tab, newline and backslash as three octal digits.
std::string unescape(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size()) {
      result.push_back(static_cast<char>(std::stoi(text.substr(at + 1, 3), nullptr, 8)));
      at += 3;
    } else {
      result.push_back(text[at]);
    }
  }
  return result;
}

struct CgroupMount {
  std::string root;
  std::string mountpoint;
};

/// Where cgroup version 2 is mounted: /sys/fs/cgroup, or /sys/fs/cgroup/unified on a hybrid machine.
std::optional<CgroupMount> find_cgroup_mount() {
  const auto text = read_small_file("/proc/self/mountinfo");
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto separator = line.find(" - ");
    if (separator == std::string::npos || line.compare(separator + 3, 8, "cgroup2 ") != 0) continue;
    std::istringstream fields(line);
    std::string id;
    std::string parent;
    std::string device;
    std::string root;
    std::string mountpoint;
    fields >> id >> parent >> device >> root >> mountpoint;
    return CgroupMount{unescape(root), unescape(mountpoint)};
  }
  return std::nullopt;
}

/// Our own cgroup below the mount's root, as `/a/b`, or empty for the root itself.
std::optional<std::string> own_cgroup(const std::string& mount_root) {
  const auto text = read_small_file("/proc/self/cgroup");
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    std::string path = line.substr(3);
    if (mount_root != "/") {
      // A bind mount shows a part of the hierarchy: our path counts from that part.
      if (path.rfind(mount_root, 0) != 0) return std::nullopt;
      path.erase(0, mount_root.size());
    }
    if (path == "/") path.clear();
    if (path.find("/..") != std::string::npos) return std::nullopt;
    return path;
  }
  return std::nullopt;
}

/// Not the process id: processes of other PID namespaces and our own threads may probe at the same time.
std::string probe_name() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != static_cast<ssize_t>(sizeof(number))) throw_errno("getrandom");
  return "/bridle-probe-" + std::to_string(number);
}

/// Only making a cgroup shows whether it can be made; cgroup.kill came with kernel 5.14.
bool can_make_cgroup(const std::string& root) {
  const std::string probe = root + probe_name();
  if (mkdir(probe.c_str(), 0755) != 0) return false;
  const bool usable = access((probe + "/cgroup.kill").c_str(), W_OK) == 0;
  return rmdir(probe.c_str()) == 0 && usable;
}

std::optional<std::string> find_cgroup_root() {
  const auto mount = find_cgroup_mount();
  if (!mount) return std::nullopt;
  const auto own = own_cgroup(mount->root);
  if (!own) return std::nullopt;
  std::string root = mount->mountpoint + *own;
  if (!can_make_cgroup(root)) return std::nullopt;
  return root;
}

}  // namespace

ContainmentSupport probe_containment() {
  ContainmentSupport support;
  if (const UniqueFd self = open_pidfd(getpid())) {
    support.pidfd = true;
    support.pidfs = on_pidfs(self.get());
  }
  int subreaper = 0;
  support.subreaper = prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0;
  support.cgroup_root = find_cgroup_root();
  return support;
}

}  // namespace bridle
