#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <unordered_map>

#include "descriptor.h"

namespace bridle::fuse {

/**
 * Open descriptors of backing files, least recently used first out. Only a cache: whatever is missing is opened again
 * by name, so no file handle given to the kernel depends on it.
 */
class DescriptorCache {
 public:
  explicit DescriptorCache(std::size_t capacity) : capacity_(capacity) {}

  /** Take before opening a file for put(): a drop in between makes the put a no-op. */
  std::uint64_t epoch();
  SharedDescriptor find(std::uint64_t key);
  void put(std::uint64_t key, SharedDescriptor descriptor, std::uint64_t epoch);
  void drop(std::uint64_t key);

 private:
  struct Entry {
    std::uint64_t key;
    SharedDescriptor descriptor;
  };

  const std::size_t capacity_;
  std::mutex mutex_;
  std::uint64_t epoch_ = 0;
  std::list<Entry> order_;
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> entries_;
};

}  // namespace bridle::fuse
