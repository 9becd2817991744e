#pragma once

#include <cstddef>

namespace bridle::fuse {

/**
 * One mapping that holds every buffer the kernel copies from or to. Its pages are present and locked (as far as the
 * limit of locked memory allows): a copy that needs a page fault in a process that is being killed fails with EIO to
 * the client.
 */
class BufferPool {
 public:
  /// @throws SystemError
  explicit BufferPool(std::size_t bytes);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  [[nodiscard]] char* at(std::size_t offset) const { return start_ + offset; }

 private:
  char* start_ = nullptr;
  const std::size_t bytes_;
};

}  // namespace bridle::fuse
