#include "operations.h"

#include <cerrno>
#include <exception>
#include <new>

#include "handlers.h"

namespace bridle::fuse {
namespace {

/// libfuse is C: no exception may cross it. A handler replies last, so one that threw has not replied.
template <auto Handler, typename... Arguments>
void guarded(fuse_req_t request, Arguments... arguments) {
  int error = 0;
  try {
    error = Handler(*static_cast<Core*>(fuse_req_userdata(request)), request, arguments...);
  } catch (const std::bad_alloc&) {
    error = ENOMEM;
  } catch (const std::exception&) {
    error = EIO;
  }
  if (error != 0) fuse_reply_err(request, error);
}

void init(void* /*user*/, fuse_conn_info* connection) {
  connection->max_write = max_write_bytes;
  constexpr unsigned int background_requests = 64;
  connection->max_background = background_requests;
  // A pipe dies with the process, and the kernel must not own sizes and times of files that change on our side.
  connection->want &=
      ~static_cast<unsigned int>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                                 FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS);
}

}  // namespace

fuse_lowlevel_ops make_operations() {
  fuse_lowlevel_ops operations{};
  operations.init = init;
  operations.lookup = guarded<handlers::lookup>;
  operations.getattr = guarded<handlers::getattr>;
  operations.setattr = guarded<handlers::setattr>;
  operations.open = guarded<handlers::open>;
  operations.release = guarded<handlers::release>;
  operations.read = guarded<handlers::read>;
  operations.poll = guarded<handlers::poll>;
  operations.write = guarded<handlers::write>;
  operations.create = guarded<handlers::create>;
  operations.mknod = guarded<handlers::mknod>;
  operations.mkdir = guarded<handlers::mkdir>;
  operations.symlink = guarded<handlers::symlink>;
  operations.link = guarded<handlers::link>;
  operations.unlink = guarded<handlers::unlink>;
  operations.rmdir = guarded<handlers::rmdir>;
  operations.rename = guarded<handlers::rename>;
  operations.readdir = guarded<handlers::readdir>;
  operations.readdirplus = guarded<handlers::readdirplus>;
  operations.statfs = guarded<handlers::statfs>;
  operations.fsync = guarded<handlers::fsync>;
  operations.fsyncdir = guarded<handlers::fsync>;
  return operations;
}

}  // namespace bridle::fuse
