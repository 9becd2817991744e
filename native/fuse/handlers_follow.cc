#include <fcntl.h>
#include <poll.h>

#include "handlers.h"

namespace bridle::fuse::handlers {

int open_follow(Core& core, fuse_req_t request, Inode inode, fuse_file_info& handle) {
  handle.direct_io = 1;  // its size is 0, and a page that was read says nothing of the next row
  handle.fh = core.followers.open(inode);
  if (fuse_reply_open(request, &handle) == -ENOENT) core.followers.release(handle.fh);
  return 0;
}

int read_follow(Core& core, fuse_req_t request, Inode inode, size_t size, off_t offset, const fuse_file_info& handle) {
  const bool nonblocking = (handle.flags & O_NONBLOCK) != 0;
  return core.followers.read(core, {.request = request,
                                    .inode = inode,
                                    .handle = handle.fh,
                                    .size = size,
                                    .offset = offset,
                                    .nonblocking = nonblocking});
}

int poll(Core& core, fuse_req_t request, fuse_ino_t id, fuse_file_info* handle, fuse_pollhandle* waiting) {
  Followers::Poll notice(waiting);
  constexpr unsigned int readable = POLLIN | POLLRDNORM;
  constexpr unsigned int writable = POLLOUT | POLLWRNORM;
  unsigned int events = readable | writable;  // as for any regular file
  if (handle->fh != 0) events = core.followers.poll(core, id, handle->fh, std::move(notice)) ? readable : 0;
  fuse_reply_poll(request, events);
  return 0;
}

}  // namespace bridle::fuse::handlers
