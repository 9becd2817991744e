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

/// What proves, beside a start time, that a process belongs to a lease.
struct SignalProof {
  std::string lease;
  std::string cgroup;
};

struct ContainmentSupport {
  bool pidfd = false;
  bool pidfs = false;
  bool subreaper = false;
  std::optional<int> landlock;
};

struct PeerCredentials {
  std::int64_t uid = 0;
  std::int64_t gid = 0;
  std::int64_t pid = 0;
};

constexpr const char* pidfs_scheme = "pidfs";
constexpr const char* starttime_scheme = "starttime";

/// `scheme`: which token to read; empty for the strongest.
std::optional<ProcessIdentity> identify(std::int64_t pid, const std::string& scheme = {});
SignalResult signal_process(const ProcessIdentity& identity, int signal, const std::optional<SignalProof>& proof);
ContainmentSupport probe_containment();
PeerCredentials peer_credentials(int fd);
bool notify_systemd(const std::string& message);
bool try_lock(int fd);

}  // namespace bridle
