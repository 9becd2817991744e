#include "descriptor_cache.h"

#include <utility>

namespace bridle::fuse {

std::uint64_t DescriptorCache::epoch() {
  std::lock_guard lock(mutex_);
  return epoch_;
}

SharedDescriptor DescriptorCache::find(std::uint64_t key) {
  std::lock_guard lock(mutex_);
  auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  order_.splice(order_.begin(), order_, found->second);
  return found->second->descriptor;
}

void DescriptorCache::put(std::uint64_t key, SharedDescriptor descriptor, std::uint64_t epoch) {
  SharedDescriptor evicted;  // closes after the lock is gone
  std::lock_guard lock(mutex_);
  if (epoch != epoch_ || entries_.contains(key)) return;
  order_.push_front({key, std::move(descriptor)});
  entries_.emplace(key, order_.begin());
  if (order_.size() <= capacity_) return;
  evicted = std::move(order_.back().descriptor);
  entries_.erase(order_.back().key);
  order_.pop_back();
}

void DescriptorCache::drop(std::uint64_t key) {
  SharedDescriptor dropped;
  std::lock_guard lock(mutex_);
  ++epoch_;
  auto found = entries_.find(key);
  if (found == entries_.end()) return;
  dropped = std::move(found->second->descriptor);
  order_.erase(found->second);
  entries_.erase(found);
}

}  // namespace bridle::fuse
