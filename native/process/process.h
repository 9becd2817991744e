#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

/// What the platform folders implement; src/native/process.ts and src/native/system.ts document each function.
namespace bridle {

struct ProcessIdentity {
  std::int64_t pid = 0;
  std::string token;
  std::string scheme;
};

enum class SignalResult { sent, gone, mismatch };

struct ContainmentSupport {
  bool pidfd = false;
  bool pidfs = false;
  bool subreaper = false;
  std::optional<std::string> cgroup_root;
};

struct PeerCredentials {
  std::int64_t uid = 0;
  std::int64_t gid = 0;
  std::int64_t pid = 0;
};

std::optional<ProcessIdentity> identify(std::int64_t pid);
SignalResult signal_process(const ProcessIdentity& identity, int signal);
ContainmentSupport probe_containment();
PeerCredentials peer_credentials(int fd);
bool notify_systemd(const std::string& message);
bool try_lock(int fd);

}  // namespace bridle
