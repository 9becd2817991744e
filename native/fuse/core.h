#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "descriptor_cache.h"
#include "followers.h"
#include "inbox.h"
#include "node_table.h"
#include "notifier.h"
#include "pending.h"
#include "worker.h"

namespace bridle::fuse {

inline constexpr std::size_t max_write_bytes = std::size_t{128} << 10;
inline constexpr std::size_t reply_bytes = std::size_t{128} << 10;
inline constexpr std::size_t max_request_bytes = std::size_t{1} << 20;
inline constexpr std::size_t max_control_bytes = std::size_t{64} << 10;
inline constexpr std::size_t cached_descriptors = 128;
inline constexpr std::size_t max_following = 4096;

struct Settings {
  std::chrono::milliseconds cache{3'600'000};
  std::chrono::milliseconds deadline{30'000};
  std::size_t max_pending = 1024;
};

/// All that the handlers of one mount share. Members are destroyed bottom up: what waits for others comes last.
struct Core {
  Core(const Settings& settings, NodeSpec root, std::function<void()> wake)
      : cache_seconds(std::chrono::duration<double>(settings.cache).count()),
        descriptors(cached_descriptors),
        table(std::move(root)),
        worker("bridle-inbox"),
        followers(max_following),
        pending(settings.max_pending, settings.deadline, std::move(wake)) {}

  const double cache_seconds;
  DescriptorCache descriptors;
  InboxIndex files;
  NodeTable table;
  Notifier notifier;
  Worker worker;
  Followers followers;
  Pending pending;
};

/// Room for the data of one reply, mapped and locked; each session thread has its own. Null on other threads.
inline thread_local char* reply_buffer = nullptr;

}  // namespace bridle::fuse
