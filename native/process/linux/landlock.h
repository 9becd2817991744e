#pragma once

#include <optional>
#include <string>
#include <vector>

#include "unique_fd.h"

namespace bridle {

/// Version of the kernel's Landlock; nothing when it has none or it is switched off.
std::optional<int> landlock_version();

/// A rule set that denies every file but these, each with what is below it, and signals to processes outside. Throws
/// SystemError whose step names the path that cannot be opened.
UniqueFd make_landlock_rules(const std::vector<std::string>& read_only, const std::vector<std::string>& read_write);

/// Puts the calling thread, and what it executes, under the rules. Needs no-new-privileges. 0, or -1 with errno set.
int restrict_to(const UniqueFd& rules);

}  // namespace bridle
