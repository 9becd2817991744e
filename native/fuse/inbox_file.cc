// What a client does with one open file of an inbox.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "fuse_api.h"
#include "inbox.h"

namespace bridle::fuse {

int Inbox::descriptor(InboxFile& file, SharedDescriptor& result) const {
  result = descriptors_.find(file.id);
  if (result) return 0;
  const std::uint64_t epoch = descriptors_.epoch();
  const std::shared_lock lock(mutex_);
  constexpr int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
  const int fd =
      file.unlinked ? ::open(grave(file).c_str(), flags) : openat(directory_.get(), file.name.c_str(), flags);
  if (fd < 0) return errno == ENOENT ? ESTALE : errno;
  result = std::make_shared<const Descriptor>(fd);
  descriptors_.put(file.id, result, epoch);
  return 0;
}

int Inbox::open_file(InboxFile& file, bool writing) const {
  const std::shared_lock lock(mutex_);
  if (file.unlinked) return ESTALE;
  if (writing) {
    const std::shared_lock io(file.io);
    if (file.state == InboxFile::State::Frozen) return EBUSY;
    if (file.state == InboxFile::State::HandedIn) return EROFS;
  }
  file.opens.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

void Inbox::release_file(const SharedInboxFile& file) {
  const std::unique_lock lock(mutex_);
  // After a hand-over to a new process a close may come for an open that was never counted here.
  std::uint32_t opens = file->opens.load(std::memory_order_relaxed);
  if (opens > 0) file->opens.store(--opens, std::memory_order_relaxed);
  if (opens > 0) return;
  descriptors_.drop(file->id);
  if (!file->unlinked) return;
  ::unlink(grave(*file).c_str());
  index_.erase(file->id);
  unlinked_.erase(file->id);
}

int Inbox::stat(InboxFile& file, struct stat& result) const {
  const std::shared_lock lock(mutex_);
  const int failed = file.unlinked ? ::stat(grave(file).c_str(), &result)
                                   : fstatat(directory_.get(), file.name.c_str(), &result, AT_SYMLINK_NOFOLLOW);
  if (failed != 0) return errno == ENOENT ? ESTALE : errno;
  if (file.unlinked) result.st_nlink = 0;
  result.st_ino = file.id;
  const std::shared_lock io(file.io);
  constexpr mode_t handed_in = S_IFREG | S_IRUSR | S_IRGRP;
  if (file.state == InboxFile::State::HandedIn) result.st_mode = handed_in;
  return 0;
}

int Inbox::read(InboxFile& file, char* to, std::size_t& length, off_t offset) const {
  SharedDescriptor fd;
  if (const int error = descriptor(file, fd); error != 0) return error;
  std::size_t done = 0;
  while (done < length) {
    const ssize_t part = pread(fd->get(), to + done, length - done, offset + static_cast<off_t>(done));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return errno;
    if (part == 0) break;
    done += static_cast<std::size_t>(part);
  }
  length = done;
  return 0;
}

int Inbox::write(InboxFile& file, const char* from, std::size_t length, off_t offset) const {
  if (offset < 0 || offset > max_temporary_bytes - static_cast<off_t>(length)) return EFBIG;
  return change(file, [&](int fd) {
    std::size_t done = 0;
    while (done < length) {
      const ssize_t part = pwrite(fd, from + done, length - done, offset + static_cast<off_t>(done));
      if (part < 0 && errno == EINTR) continue;
      if (part < 0) return errno;
      done += static_cast<std::size_t>(part);
    }
    return 0;
  });
}

int Inbox::truncate(InboxFile& file, off_t size) const {
  if (size < 0 || size > max_temporary_bytes) return EFBIG;
  return change(file, [size](int fd) { return ftruncate(fd, size) == 0 ? 0 : errno; });
}

int Inbox::set_attributes(InboxFile& file, const struct stat& attributes, int changes) const {
  return change(file, [&](int fd) {
    constexpr mode_t permitted = 0666;
    constexpr mode_t always = S_IRUSR | S_IWUSR;
    if ((changes & FUSE_SET_ATTR_MODE) != 0 && fchmod(fd, (attributes.st_mode & permitted) | always) != 0) return errno;
    const uid_t uid = (changes & FUSE_SET_ATTR_UID) != 0 ? attributes.st_uid : static_cast<uid_t>(-1);
    const gid_t gid = (changes & FUSE_SET_ATTR_GID) != 0 ? attributes.st_gid : static_cast<gid_t>(-1);
    if ((changes & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0 && fchown(fd, uid, gid) != 0) return errno;
    const auto chosen = [changes](const timespec& time, int set, int now) {
      if ((changes & now) != 0) return timespec{.tv_sec = 0, .tv_nsec = UTIME_NOW};
      return (changes & set) != 0 ? time : timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT};
    };
    constexpr int times = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
    if ((changes & times) == 0) return 0;
    const timespec both[2] = {chosen(attributes.st_atim, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW),
                              chosen(attributes.st_mtim, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW)};
    return futimens(fd, both) == 0 ? 0 : errno;
  });
}

}  // namespace bridle::fuse
