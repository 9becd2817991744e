#pragma once

#include <sys/types.h>

#include <cstdint>

namespace bridle::fuse {

/**
 * What an offset in a `follow` file means: bits 38 and up are the number of a row, counted from 1 (0 is the first one,
 * too), the rest is a count of bytes from the start of that row. So a reader begins at any row by one seek, goes on by
 * reading, and its position is all that anybody has to remember.
 */
struct RowPosition {
  static constexpr unsigned row_shift = 38;

  explicit RowPosition(off_t offset)
      : row(static_cast<std::uint64_t>(offset) >> row_shift), bytes(offset & ((off_t{1} << row_shift) - 1)) {}

  std::uint64_t row;
  off_t bytes;
};

/// Finds where a row starts in a file that only grows, going on from where the last search ended.
class RowFinder {
 public:
  explicit RowFinder(std::uint64_t row) : row_(row) {}

  [[nodiscard]] std::uint64_t row() const { return row_; }
  /// @param start where the row starts, or -1 while rows before it are missing @returns 0 or an errno
  int find(int fd, off_t& start);

 private:
  std::uint64_t row_;
  std::uint64_t reached_ = 1;  // the row that starts at byte_
  off_t byte_ = 0;
};

}  // namespace bridle::fuse
