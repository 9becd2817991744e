#include "buffer_pool.h"

#include <sys/mman.h>

#include "native/process/system_error.h"

namespace bridle::fuse {

BufferPool::BufferPool(std::size_t bytes) : bytes_(bytes) {
  void* const mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (mapping == MAP_FAILED) throw_errno("map the request buffers");
  start_ = static_cast<char*>(mapping);
  mlock(start_, bytes_);  // best effort: the limit of an ordinary user may be lower
}

BufferPool::~BufferPool() { munmap(start_, bytes_); }

}  // namespace bridle::fuse
