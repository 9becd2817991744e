#include "inbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <utility>
#include <vector>

#include "names.h"
#include "native/process/system_error.h"

namespace bridle::fuse {
namespace {

constexpr std::uint64_t first_refused_inode = inbox_bit - 16;  // room for the offsets of . and ..
constexpr mode_t always = S_IRUSR | S_IWUSR;                   // this process must be able to read what is handed in

/// Stays the same for the life of a file and differs for the next file that gets its inode number.
std::uint64_t file_generation(int fd) {
  int number = 0;
  if (ioctl(fd, FS_IOC_GETVERSION, &number) == 0) return static_cast<std::uint32_t>(number);
  struct statx extended{};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &extended) == 0 && (extended.stx_mask & STATX_BTIME) != 0) {
    constexpr std::uint64_t ns_per_second = 1'000'000'000;
    const auto seconds = static_cast<std::uint64_t>(extended.stx_btime.tv_sec);
    return static_cast<std::uint32_t>(seconds * ns_per_second + extended.stx_btime.tv_nsec);
  }
  return 0;
}

/// Calls `visit(name)` for each entry but . and .. of a directory.
template <typename Visit>
void for_each_entry(int directory, Visit&& visit) {
  const int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = copy < 0 ? nullptr : fdopendir(copy);
  if (entries == nullptr) {
    const int error = errno;
    if (copy >= 0) ::close(copy);
    throw SystemError(error, "read an inbox's backing directory");
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> owner(entries, closedir);
  while (const dirent* entry = readdir(entries)) {
    const std::string name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") visit(name);
  }
}

}  // namespace

InboxFile::InboxFile(Inode node, std::uint64_t number, std::string label, const std::shared_ptr<Inbox>& directory,
                     State initial)
    : id(node), generation(number), inbox(directory), state(initial), name(std::move(label)) {}

SharedInboxFile InboxIndex::find(Inode id) const {
  const std::shared_lock lock(mutex_);
  auto found = files_.find(id);
  return found == files_.end() ? nullptr : found->second.lock();
}

void InboxIndex::add(const SharedInboxFile& file) {
  const std::unique_lock lock(mutex_);
  files_[file->id] = file;
}

void InboxIndex::erase(Inode id) {
  const std::unique_lock lock(mutex_);
  files_.erase(id);
}

bool InboxIndex::accept_device(dev_t device) {
  const std::unique_lock lock(mutex_);
  if (!device_) device_ = device;
  return *device_ == device;
}

std::shared_ptr<Inbox> Inbox::open(Inode inode, const std::string& path, InboxIndex& index,
                                   DescriptorCache& descriptors) {
  constexpr mode_t private_directory = 0700;
  for (const std::string& directory : {path, path + ".graveyard"}) {
    if (::mkdir(directory.c_str(), private_directory) != 0 && errno != EEXIST) throw_errno("make " + directory);
  }
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid()) throw_errno("open " + path);
  struct stat attributes{};
  if (fstat(directory.get(), &attributes) != 0) throw_errno("look at " + path);
  if (!index.accept_device(attributes.st_dev)) throw SystemError(EXDEV, "open " + path + " on another file system");
  auto inbox = std::make_shared<Inbox>(inode, path, std::move(directory), index, descriptors);
  inbox->empty_graveyard();
  inbox->take_over();
  return inbox;
}

Inbox::Inbox(Inode inode, std::string path, Descriptor directory, InboxIndex& index, DescriptorCache& descriptors)
    : inode_(inode),
      path_(std::move(path)),
      directory_(std::move(directory)),
      index_(index),
      descriptors_(descriptors) {}

Inbox::~Inbox() {
  for (const auto& [inode, file] : by_inode_) index_.erase(file->id);
  for (const auto& [id, file] : unlinked_) index_.erase(id);
}

void Inbox::empty_graveyard() const {
  const Descriptor graveyard(::open((path_ + ".graveyard").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!graveyard.valid()) throw_errno("open " + path_ + ".graveyard");
  for_each_entry(graveyard.get(), [&](const std::string& name) {
    if (unlinkat(graveyard.get(), name.c_str(), 0) != 0 && errno != ENOENT) throw_errno("empty the graveyard");
  });
}

void Inbox::take_over() {
  const std::unique_lock lock(mutex_);
  for_each_entry(directory_.get(), [this](const std::string& name) {
    if (check_name(name) != 0) return;
    const Descriptor fd(openat(directory_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat attributes{};
    if (!fd.valid() || fstat(fd.get(), &attributes) != 0 || !S_ISREG(attributes.st_mode)) return;
    if (attributes.st_ino < first_refused_inode) adopt(name, fd, attributes);
  });
}

SharedInboxFile Inbox::adopt(const std::string& name, const Descriptor& fd, const struct stat& attributes) {
  const bool request = is_request_name(name);
  auto file =
      std::make_shared<InboxFile>(inbox_bit | attributes.st_ino, file_generation(fd.get()), name, shared_from_this(),
                                  request ? InboxFile::State::HandedIn : InboxFile::State::Temporary);
  by_inode_[attributes.st_ino] = file;
  by_name_[name] = file;
  if (!request) ++temporaries_;
  index_.add(file);
  return file;
}

std::string Inbox::grave(const InboxFile& file) const {
  return path_ + ".graveyard/" + std::to_string(file.id & ~inbox_bit);
}

SharedInboxFile Inbox::find_name(const std::string& name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

int Inbox::lookup(const std::string& name, SharedInboxFile& file) const {
  const std::shared_lock lock(mutex_);
  file = find_name(name);
  return file ? 0 : ENOENT;
}

int Inbox::statfs(struct statvfs& result) const { return fstatvfs(directory_.get(), &result) == 0 ? 0 : errno; }

int Inbox::create(const std::string& name, mode_t mode, uid_t uid, gid_t gid, SharedInboxFile& file) {
  const std::unique_lock lock(mutex_);
  if (by_name_.contains(name)) return EEXIST;
  if (temporaries_ >= max_temporaries) return ENOSPC;
  constexpr mode_t permitted = 0666;
  const mode_t wanted = (mode & permitted) | always;
  auto fd = std::make_shared<const Descriptor>(
      openat(directory_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, wanted));
  if (!fd->valid()) return errno;
  struct stat attributes{};
  int error = fstat(fd->get(), &attributes) != 0 ? errno : 0;
  if (error == 0 && attributes.st_ino >= first_refused_inode) error = EOVERFLOW;
  const bool foreign = attributes.st_uid != uid || attributes.st_gid != gid;
  if (error == 0 && foreign && fchown(fd->get(), uid, gid) != 0 && errno != EPERM) error = errno;
  if (error == 0 && (attributes.st_mode & permitted) != wanted && fchmod(fd->get(), wanted) != 0) error = errno;
  if (error != 0) {
    unlinkat(directory_.get(), name.c_str(), 0);
    return error;
  }
  file = adopt(name, *fd, attributes);
  file->opens.store(1, std::memory_order_relaxed);
  descriptors_.put(file->id, std::move(fd), descriptors_.epoch());
  return 0;
}

/// Takes a file out of the directory's maps. Its caller removed or renamed the backing file, under mutex_.
void Inbox::forget_name(InboxFile& file) {
  by_inode_.erase(file.id & ~inbox_bit);
  const std::shared_lock io(file.io);
  if (file.state != InboxFile::State::HandedIn) --temporaries_;
}

/// Moves an open file out of sight: whoever has it open goes on using it, as everywhere under Unix.
int Inbox::bury(InboxFile& file) {
  if (renameat(directory_.get(), file.name.c_str(), AT_FDCWD, grave(file).c_str()) != 0) return errno;
  SharedInboxFile kept = std::move(by_name_.at(file.name));
  by_name_.erase(file.name);
  forget_name(file);
  file.unlinked = true;
  unlinked_.emplace(file.id, std::move(kept));
  return 0;
}

int Inbox::drop(InboxFile& file) {
  if (file.opens.load(std::memory_order_relaxed) > 0) return bury(file);
  if (unlinkat(directory_.get(), file.name.c_str(), 0) != 0 && errno != ENOENT) return errno;
  const SharedInboxFile last = std::move(by_name_.at(file.name));
  by_name_.erase(file.name);
  forget_name(file);
  file.unlinked = true;
  index_.erase(file.id);
  descriptors_.drop(file.id);
  return 0;
}

int Inbox::unlink(const std::string& name) {
  const std::unique_lock lock(mutex_);
  const SharedInboxFile file = find_name(name);
  if (!file) return ENOENT;
  {
    const std::shared_lock io(file->io);
    if (file->state == InboxFile::State::HandedIn) return EROFS;
    if (file->state == InboxFile::State::Frozen) return EBUSY;
  }
  return drop(*file);
}

int Inbox::consume(const std::string& name) {
  const std::unique_lock lock(mutex_);
  const SharedInboxFile file = find_name(name);
  return file ? drop(*file) : ENOENT;
}

int Inbox::rename(const std::string& from, const std::string& to, bool replace) {
  const std::unique_lock lock(mutex_);
  const SharedInboxFile file = find_name(from);
  if (!file) return ENOENT;
  {
    const std::shared_lock io(file->io);
    if (file->state == InboxFile::State::HandedIn) return EROFS;
    if (file->state == InboxFile::State::Frozen) return EBUSY;
  }
  if (from == to) return 0;
  if (const SharedInboxFile target = find_name(to)) {
    if (!replace) return EEXIST;
    if (target->opens.load(std::memory_order_relaxed) > 0) {
      // A second link first, so that the name never disappears.
      if (linkat(directory_.get(), to.c_str(), AT_FDCWD, grave(*target).c_str(), 0) != 0) return errno;
    }
    if (renameat(directory_.get(), from.c_str(), directory_.get(), to.c_str()) != 0) return errno;
    by_name_.erase(to);
    forget_name(*target);
    target->unlinked = true;
    if (target->opens.load(std::memory_order_relaxed) > 0) {
      unlinked_.emplace(target->id, target);
    } else {
      index_.erase(target->id);
      descriptors_.drop(target->id);
    }
  } else if (renameat(directory_.get(), from.c_str(), directory_.get(), to.c_str()) != 0) {
    return errno;
  }
  by_name_.erase(from);
  by_name_.emplace(to, file);
  file->name = to;
  return 0;
}

int Inbox::freeze(const std::string& name, SharedInboxFile& file) {
  const std::shared_lock lock(mutex_);
  file = find_name(name);
  if (!file) return ENOENT;
  const std::unique_lock io(file->io);
  if (file->state == InboxFile::State::HandedIn) return EROFS;
  if (file->state == InboxFile::State::Frozen) return EBUSY;
  file->state = InboxFile::State::Frozen;
  return 0;
}

void Inbox::unfreeze(InboxFile& file) {
  const std::unique_lock io(file.io);
  if (file.state == InboxFile::State::Frozen) file.state = InboxFile::State::Temporary;
}

int Inbox::hand_in(InboxFile& file, const std::string& request_name) {
  const std::unique_lock lock(mutex_);
  if (file.unlinked) return ENOENT;
  if (by_name_.contains(request_name)) return drop(file);
  const int directory = directory_.get();
  if (renameat2(directory, file.name.c_str(), directory, request_name.c_str(), RENAME_NOREPLACE) != 0) return errno;
  SharedInboxFile moved = std::move(by_name_.at(file.name));
  by_name_.erase(file.name);
  by_name_.emplace(request_name, std::move(moved));
  file.name = request_name;
  --temporaries_;
  const std::unique_lock io(file.io);
  file.state = InboxFile::State::HandedIn;
  return 0;
}

}  // namespace bridle::fuse
