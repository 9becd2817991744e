#include "worker.h"

#include <utility>

#include "thread.h"

namespace bridle::fuse {

Worker::Worker(const char* name) : thread_(start_thread(name, [this] { run(); })) {}

Worker::~Worker() { stop(); }

bool Worker::post(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return false;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void Worker::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Worker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::deque<std::function<void()>> batch;
    batch.swap(tasks_);
    lock.unlock();
    for (auto& task : batch) task();
    batch.clear();
    lock.lock();
  }
}

}  // namespace bridle::fuse
