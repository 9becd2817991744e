#include "followers.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <vector>

#include "core.h"
#include "handlers.h"

namespace bridle::fuse {
namespace {

void on_interrupt(fuse_req_t request, void* data) {
  static_cast<Core*>(fuse_req_userdata(request))->followers.interrupt(reinterpret_cast<std::uintptr_t>(data));
}

int size_of(int fd, off_t& size) {
  struct stat attributes{};
  if (fstat(fd, &attributes) != 0) return errno;
  size = attributes.st_size;
  return 0;
}

int backing_of(Core& core, Inode inode, SharedDescriptor& fd) {
  View view;
  if (const int error = core.table.find(inode, view); error != 0) return error;
  return handlers::backing_descriptor(core, view, fd);
}

}  // namespace

// Handles of an earlier process must not meet the reader of another one.
Followers::Followers(std::size_t limit)
    : limit_(limit),
      buffer_(reply_bytes),
      last_handle_(static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count())) {}

std::uint64_t Followers::open(Inode inode) {
  const std::lock_guard lock(mutex_);
  readers_.emplace(++last_handle_, Reader{.inode = inode});
  return last_handle_;
}

void Followers::release(std::uint64_t handle) {
  Poll dropped;
  const std::lock_guard lock(mutex_);
  const auto reader = readers_.find(handle);
  if (reader == readers_.end()) return;
  if (const auto poll = polls_.find({reader->second.inode, handle}); poll != polls_.end()) {
    dropped = std::move(poll->second);
    polls_.erase(poll);
  }
  readers_.erase(reader);
}

int Followers::read(Core& core, const Read& read) {
  std::uint64_t token = 0;
  {
    const std::lock_guard lock(mutex_);
    token = ++last_token_;
  }
  // An interrupt that comes before the read waits finds nothing; it is noticed when the read is about to.
  fuse_req_interrupt_func(read.request, on_interrupt, reinterpret_cast<void*>(static_cast<std::uintptr_t>(token)));
  return attempt(core, read, token, reply_buffer);
}

int Followers::attempt(Core& core, const Read& read, std::uint64_t token, char* buffer) {
  for (;;) {
    const std::uint64_t seen = growths();
    std::size_t size = read.size;
    const int error = fetch(core, read, buffer, size);
    // Whoever reads from what was removed is at its end.
    if (error != 0 && error != ESTALE) return error;
    if (error == ESTALE || size > 0 || read.size == 0) {
      fuse_reply_buf(read.request, buffer, error == ESTALE ? 0 : size);
      return 0;
    }
    if (read.nonblocking) return EAGAIN;
    const std::lock_guard lock(mutex_);
    if (growths_ != seen) continue;
    if (closed_) return ESHUTDOWN;
    if (fuse_req_interrupted(read.request) != 0) return EINTR;
    if (waiting_.size() >= limit_) return EAGAIN;
    waiting_.emplace(Key{read.inode, token}, read);
    return 0;
  }
}

int Followers::fetch(Core& core, const Read& read, char* buffer, std::size_t& size) {
  const std::size_t room = size;
  size = 0;
  SharedDescriptor fd;
  if (const int error = backing_of(core, read.inode, fd); error != 0) return error;
  off_t at = -1;
  if (const int error = locate(fd->get(), read.handle, RowPosition(read.offset), at); error != 0) return error;
  if (at < 0) return 0;
  ssize_t length = 0;
  do {
    length = pread(fd->get(), buffer, room, at);
  } while (length < 0 && errno == EINTR);
  if (length < 0) return errno;
  size = static_cast<std::size_t>(length);
  if (size == room && room > 1) {
    // The kernel takes a full answer for a part of a larger read and asks for the next part, which would wait.
    off_t end = 0;
    if (const int error = size_of(fd->get(), end); error != 0) return error;
    if (end == at + length) --size;
  }
  const std::lock_guard lock(mutex_);
  if (const auto reader = readers_.find(read.handle); reader != readers_.end()) {
    reader->second.next = read.offset + static_cast<off_t>(size);
  }
  return 0;
}

int Followers::locate(int fd, std::uint64_t handle, RowPosition position, off_t& at) {
  RowFinder finder(position.row);
  {
    const std::lock_guard lock(mutex_);
    const auto reader = readers_.find(handle);
    if (reader != readers_.end() && reader->second.finder.row() == position.row) finder = reader->second.finder;
  }
  off_t start = -1;
  if (const int error = finder.find(fd, start); error != 0) return error;
  at = start < 0 ? start : start + position.bytes;
  const std::lock_guard lock(mutex_);
  if (const auto reader = readers_.find(handle); reader != readers_.end()) reader->second.finder = finder;
  return 0;
}

bool Followers::poll(Core& core, Inode inode, std::uint64_t handle, Poll poll) {
  if (poll) {
    // Before the look below, so that no growth is missed. The older one of the same handle goes.
    const std::lock_guard lock(mutex_);
    if (!closed_) std::swap(polls_[Key{inode, handle}], poll);
  }
  return has_more(core, inode, handle);
}

/// True also when nobody knows: a read then says what there is.
bool Followers::has_more(Core& core, Inode inode, std::uint64_t handle) {
  off_t next = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto reader = readers_.find(handle);
    if (closed_ || reader == readers_.end()) return true;
    next = reader->second.next;
  }
  SharedDescriptor fd;
  off_t at = -1;
  off_t end = 0;
  const bool known = backing_of(core, inode, fd) == 0 && locate(fd->get(), handle, RowPosition(next), at) == 0 &&
                     size_of(fd->get(), end) == 0;
  return !known || (at >= 0 && at < end);
}

std::uint64_t Followers::growths() {
  const std::lock_guard lock(mutex_);
  return growths_;
}

bool Followers::grown(Inode inode) {
  const std::lock_guard lock(mutex_);
  ++growths_;
  const auto is_of = [inode](const auto& map) {
    const auto first = map.lower_bound({inode, 0});
    return first != map.end() && first->first.first == inode;
  };
  return is_of(waiting_) || is_of(polls_);
}

bool Followers::removed() {
  const std::lock_guard lock(mutex_);
  ++growths_;
  return !waiting_.empty() || !polls_.empty();
}

std::optional<std::pair<std::uint64_t, Followers::Read>> Followers::take_waiting(Inode inode, std::uint64_t from) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.lower_bound({inode, from});
  if (found == waiting_.end() || found->first.first != inode) return std::nullopt;
  const std::pair taken(found->first.second, found->second);
  waiting_.erase(found);
  return taken;
}

void Followers::wake(Core& core, Inode inode) {
  std::uint64_t from = 0;
  while (const auto taken = take_waiting(inode, from)) {
    const auto& [token, read] = *taken;
    from = token + 1;
    if (const int error = attempt(core, read, token, buffer_.at(0)); error != 0) fuse_reply_err(read.request, error);
  }
  std::vector<Poll> polls;
  {
    const std::lock_guard lock(mutex_);
    for (auto poll = polls_.lower_bound({inode, 0}); poll != polls_.end() && poll->first.first == inode;) {
      polls.push_back(std::move(poll->second));
      poll = polls_.erase(poll);
    }
  }
  // ENOENT: its file was closed meanwhile.
  for (const Poll& poll : polls) fuse_lowlevel_notify_poll(poll.get());
}

void Followers::wake_all(Core& core) {
  std::vector<Inode> inodes;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, read] : waiting_) inodes.push_back(key.first);
    for (const auto& [key, poll] : polls_) inodes.push_back(key.first);
  }
  std::sort(inodes.begin(), inodes.end());
  inodes.erase(std::unique(inodes.begin(), inodes.end()), inodes.end());
  for (const Inode inode : inodes) wake(core, inode);
}

void Followers::interrupt(std::uint64_t token) {
  std::map<Key, Read>::node_type taken;
  {
    const std::lock_guard lock(mutex_);
    const auto has_token = [token](const auto& entry) { return entry.first.second == token; };
    const auto found = std::find_if(waiting_.begin(), waiting_.end(), has_token);
    if (found == waiting_.end()) return;
    taken = waiting_.extract(found);
  }
  fuse_reply_err(taken.mapped().request, EINTR);
}

std::size_t Followers::waiting() {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void Followers::close() {
  std::map<Key, Read> waiting;
  std::map<Key, Poll> polls;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    waiting.swap(waiting_);
    polls.swap(polls_);
  }
  for (const auto& [key, read] : waiting) fuse_reply_err(read.request, ESHUTDOWN);
  for (const auto& [key, poll] : polls) fuse_lowlevel_notify_poll(poll.get());
}

}  // namespace bridle::fuse
