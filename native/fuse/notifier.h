#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fuse_api.h"
#include "node_table.h"

namespace bridle::fuse {

/**
 * Tells the kernel what to forget, from a thread of its own: such a message may wait for a directory lock that a client
 * holds until its own request is answered. A notice that waits already is not queued twice.
 */
class Notifier {
 public:
  Notifier() = default;
  ~Notifier() { stop(); }
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  void start(fuse_session* session);
  void post(std::vector<Notice> notices);
  /// A client itself is making this name: the kernel learns of it from the reply, a notice would only get in the way.
  void hold(Inode parent, const std::string& name);
  /// @param failed the client was told that nothing was made, so the kernel has to hear of the name if there is one
  void release(Inode parent, const std::string& name, bool failed);
  /// Drops what still waits. Safe to call twice, from one thread.
  void stop();

 private:
  void enqueue(Notice notice);
  void run();
  void send(const Notice& notice) const;

  fuse_session* session_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Notice> queue_;
  std::unordered_set<std::string> queued_;
  std::multiset<std::pair<Inode, std::string>> held_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace bridle::fuse
