#pragma once

#include <string>

#include "descriptor.h"

namespace bridle::fuse {

/// Mounts and returns the open /dev/fuse: mount(2) when this process may, else fusermount3. @throws SystemError
Descriptor open_connection(const std::string& mountpoint, const std::string& source, bool allow_other);

/// umount2(2) when this process may, else fusermount3 -u. @throws SystemError
void unmount(const std::string& mountpoint, bool lazy);

}  // namespace bridle::fuse
