#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace bridle::fuse {

/**
 * One thread that runs tasks in the order they were posted. It keeps disk work that ends a request (the rename of a
 * handed-in file, the removal of a consumed one) away from the JavaScript thread.
 */
class Worker {
 public:
  explicit Worker(const char* name);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /** @returns false after stop(): the task will not run. */
  bool post(std::function<void()> task);
  /** Runs what was posted, then ends the thread. Safe to call twice, from one thread. */
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace bridle::fuse
