#pragma once

#include "fuse_api.h"

namespace bridle::fuse {

/// The handlers that libfuse calls on the session threads. Their user data is a Core.
/// What is missing here is answered ENOSYS once by libfuse and remembered by the kernel (extended attributes, flush).
fuse_lowlevel_ops make_operations();

}  // namespace bridle::fuse
