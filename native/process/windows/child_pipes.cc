#include "child_pipes.h"

#include "last_error.h"

namespace bridle {
namespace {

constexpr DWORD buffer_bytes = 65536;

UniqueHandle make_end(const std::wstring& name, DWORD direction) {
  SECURITY_ATTRIBUTES inheritable{sizeof(SECURITY_ATTRIBUTES), nullptr, TRUE};
  // Fails when somebody else made a pipe of this name, and a second client finds it busy: so a client that connected
  // is the only one there will ever be.
  UniqueHandle end(CreateNamedPipeW(name.c_str(), direction | FILE_FLAG_FIRST_PIPE_INSTANCE,
                                    PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS, 1,
                                    buffer_bytes, buffer_bytes, 0, &inheritable));
  if (!end) throw_last_error("pipe");
  return end;
}

}  // namespace

// Not the usual way round: the child has the server's ends. The addon and node.exe have C libraries of their own, so
// a descriptor of the one means nothing to the other, and the client's end is what net.connect() makes by itself.
ChildPipes make_child_pipes(const PipeNames& names) {
  return {make_end(names[0], PIPE_ACCESS_INBOUND), make_end(names[1], PIPE_ACCESS_OUTBOUND),
          make_end(names[2], PIPE_ACCESS_OUTBOUND)};
}

}  // namespace bridle
