#include "row_position.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace bridle::fuse {

int RowFinder::find(int fd, off_t& start) {
  std::array<char, 65536> block{};
  start = -1;
  off_t from = byte_;
  while (reached_ < row_) {
    const ssize_t length = pread(fd, block.data(), block.size(), from);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return errno;
    if (length == 0) return 0;
    const char* at = block.data();
    const char* const end = at + length;
    while (reached_ < row_) {
      const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
      if (newline == nullptr) break;
      at = newline + 1;
      ++reached_;
      byte_ = from + (at - block.data());
    }
    from += length;
  }
  start = byte_;
  return 0;
}

}  // namespace bridle::fuse
