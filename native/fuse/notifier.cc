#include "notifier.h"

#include <utility>

#include "thread.h"

namespace bridle::fuse {
namespace {

std::string key_of(const Notice& notice) {
  return std::to_string(static_cast<int>(notice.what)) + ' ' + std::to_string(notice.inode) + ' ' + notice.name;
}

}  // namespace

void Notifier::start(fuse_session* session) {
  session_ = session;
  thread_ = start_thread("bridle-notify", [this] { run(); });
}

void Notifier::enqueue(Notice notice) {
  if (notice.what == Notice::What::Entry && held_.contains({notice.inode, notice.name})) return;
  if (queued_.insert(key_of(notice)).second) queue_.push_back(std::move(notice));
}

void Notifier::post(std::vector<Notice> notices) {
  if (notices.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (Notice& notice : notices) enqueue(std::move(notice));
  }
  wake_.notify_one();
}

void Notifier::hold(Inode parent, const std::string& name) {
  const std::lock_guard lock(mutex_);
  held_.emplace(parent, name);
}

void Notifier::release(Inode parent, const std::string& name, bool failed) {
  {
    const std::lock_guard lock(mutex_);
    held_.extract({parent, name});
    if (failed) enqueue({Notice::What::Entry, parent, name});
  }
  wake_.notify_one();
}

void Notifier::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Notifier::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const Notice notice = std::move(queue_.front());
    queue_.pop_front();
    queued_.erase(key_of(notice));
    lock.unlock();
    send(notice);
    lock.lock();
  }
}

/// The result is of no use: ENOENT says that the kernel holds nothing of it, ENODEV that the mount is gone.
void Notifier::send(const Notice& notice) const {
  switch (notice.what) {
    case Notice::What::Entry:
      fuse_lowlevel_notify_inval_entry(session_, notice.inode, notice.name.c_str(), notice.name.size());
      break;
    case Notice::What::Attributes:
      fuse_lowlevel_notify_inval_inode(session_, notice.inode, -1, 0);
      break;
    case Notice::What::Content:
      fuse_lowlevel_notify_inval_inode(session_, notice.inode, 0, 0);
      break;
  }
}

}  // namespace bridle::fuse
