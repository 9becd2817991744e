#pragma once

#include <string_view>

namespace bridle::fuse {

/**
 * Judges a name that a client wants to give.
 * @returns 0, or EILSEQ (not UTF-8), EINVAL (control character), ENAMETOOLONG
 */
int check_name(std::string_view name);

/** Does a rename to this name hand a request in? */
bool is_request_name(std::string_view name);

}  // namespace bridle::fuse
