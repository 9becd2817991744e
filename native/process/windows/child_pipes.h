#pragma once

#include <array>
#include <string>

#include "unique_handle.h"

namespace bridle {

/// The child's ends of its three standard streams: inheritable, so keep them only until the child exists.
struct ChildPipes {
  UniqueHandle stdin_end;
  UniqueHandle stdout_end;
  UniqueHandle stderr_end;
};

/// Names of the pipes, in the order of the streams. They must not exist yet.
using PipeNames = std::array<std::wstring, 3>;

/// Each pipe is one-way and takes one client: whoever asked for it connects by name. Throws SystemError, step `pipe`.
ChildPipes make_child_pipes(const PipeNames& names);

}  // namespace bridle
