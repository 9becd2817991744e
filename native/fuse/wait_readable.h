#pragma once

#include <chrono>

namespace bridle::fuse {

/// Waits until a descriptor can be read, through signals. @returns false at the deadline. @throws SystemError
bool wait_readable(int fd, std::chrono::milliseconds patience);

}  // namespace bridle::fuse
