#include "landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "../system_error.h"

namespace bridle {
namespace {

// Rights and fields that came after the headers of Debian 12: version 3, 5 and 6 of the interface
// (Documentation/userspace-api/landlock.rst of the kernel).
constexpr std::uint64_t right_truncate = 1ULL << 14U;
constexpr std::uint64_t right_ioctl_device = 1ULL << 15U;
constexpr std::uint64_t scope_signal = 1ULL << 1U;
constexpr int version_with_refer = 2;
constexpr int version_with_truncate = 3;
constexpr int version_with_ioctl_device = 5;
constexpr int version_with_scopes = 6;

struct Ruleset {
  std::uint64_t files = 0;
  std::uint64_t network = 0;
  std::uint64_t scopes = 0;
};

constexpr std::uint64_t reading =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;

/// What can be asked of something that is not a directory.
constexpr std::uint64_t of_files = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                                   LANDLOCK_ACCESS_FS_WRITE_FILE | right_truncate | right_ioctl_device;

std::uint64_t all_rights(int version) {
  std::uint64_t rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1U) - 1;
  if (version >= version_with_refer) rights |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= version_with_truncate) rights |= right_truncate;
  if (version >= version_with_ioctl_device) rights |= right_ioctl_device;
  return rights;
}

void allow(const UniqueFd& rules, const std::string& path, std::uint64_t rights) {
  const UniqueFd place(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place) throw_errno("paths " + path);
  struct stat info{};
  if (fstat(place.get(), &info) != 0) throw_errno("paths " + path);
  landlock_path_beneath_attr rule{};
  rule.allowed_access = S_ISDIR(info.st_mode) ? rights : rights & of_files;
  rule.parent_fd = place.get();
  if (syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    throw_errno("paths " + path);
  }
}

}  // namespace

std::optional<int> landlock_version() {
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return std::nullopt;
  return static_cast<int>(version);
}

UniqueFd make_landlock_rules(const std::vector<std::string>& read_only, const std::vector<std::string>& read_write) {
  const int version = landlock_version().value_or(0);
  Ruleset ruleset;
  ruleset.files = all_rights(version);
  if (version >= version_with_scopes) ruleset.scopes = scope_signal;
  // Earlier versions know fewer fields and refuse a longer struct only when it is not zero there.
  UniqueFd rules(static_cast<int>(syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0)));
  if (!rules) throw_errno("paths");
  for (const std::string& path : read_only) allow(rules, path, reading & ruleset.files);
  for (const std::string& path : read_write) allow(rules, path, ruleset.files);
  return rules;
}

int restrict_to(const UniqueFd& rules) { return static_cast<int>(syscall(SYS_landlock_restrict_self, rules.get(), 0)); }

}  // namespace bridle
