#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "handlers.h"

namespace bridle::fuse::handlers {
namespace {

constexpr int access_mode = O_ACCMODE;

bool wants_to_change(const fuse_file_info& handle) {
  return (handle.flags & access_mode) != O_RDONLY || (handle.flags & O_TRUNC) != 0;
}

int read_backing(Core& core, fuse_req_t request, const View& view, std::size_t size, off_t offset) {
  SharedDescriptor fd;
  if (const int error = backing_descriptor(core, view, fd); error != 0) return error;
  std::size_t done = 0;
  while (done < size) {
    const ssize_t part = pread(fd->get(), reply_buffer + done, size - done, offset + static_cast<off_t>(done));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) return errno;
    if (part == 0) break;
    done += static_cast<std::size_t>(part);
  }
  fuse_reply_buf(request, reply_buffer, done);
  return 0;
}

int open_inbox_file(Core& core, fuse_req_t request, Inode id, fuse_file_info& handle) {
  SharedInboxFile file;
  std::shared_ptr<Inbox> inbox;
  if (const int error = find_inbox_file(core, id, file, inbox); error != 0) return error;
  if (const int error = inbox->open_file(*file, wants_to_change(handle)); error != 0) return error;
  if ((handle.flags & O_TRUNC) != 0) {
    if (const int error = inbox->truncate(*file, 0); error != 0) {
      inbox->release_file(file);
      return error;
    }
  }
  // ENOENT: the caller was interrupted, so there will be no release.
  if (fuse_reply_open(request, &handle) == -ENOENT) inbox->release_file(file);
  return 0;
}

}  // namespace

int backing_descriptor(Core& core, const View& view, SharedDescriptor& result) {
  result = core.descriptors.find(view.inode());
  if (result) return 0;
  const std::uint64_t epoch = core.descriptors.epoch();
  result = std::make_shared<const Descriptor>(::open(view.path->c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!result->valid()) return errno == ENOENT ? ESTALE : errno;
  core.descriptors.put(view.inode(), result, epoch);
  return 0;
}

bool is_inbox_file(Inode id) { return (id & inbox_bit) != 0; }

int find_inbox_file(Core& core, Inode id, SharedInboxFile& file, std::shared_ptr<Inbox>& inbox) {
  file = core.files.find(id);
  inbox = file ? file->inbox.lock() : nullptr;
  // ESTALE makes the kernel look the name up again, so that a removed file ends as ENOENT.
  return inbox ? 0 : ESTALE;
}

int attributes_of(const View& view, struct stat& result) {
  result = view.to_stat();
  if (view.kind != Kind::File) return 0;
  struct stat backing{};
  if (::stat(view.path->c_str(), &backing) != 0) return errno == ENOENT ? ESTALE : errno;
  result.st_size = backing.st_size;
  result.st_blocks = backing.st_blocks;
  result.st_mtim = backing.st_mtim;
  result.st_ctim = backing.st_ctim;
  result.st_atim = backing.st_atim;
  return 0;
}

int entry_of(const Core& core, const View& view, fuse_entry_param& entry) {
  entry = {};
  entry.ino = view.id;
  entry.generation = view.generation;
  entry.entry_timeout = core.cache_seconds;
  // The size of a growing file is asked for each time.
  entry.attr_timeout = view.kind == Kind::File ? 0 : core.cache_seconds;
  return attributes_of(view, entry.attr);
}

int entry_of(const Core& core, const Inbox& inbox, InboxFile& file, fuse_entry_param& entry) {
  entry = {};
  entry.ino = file.id;
  entry.generation = file.generation;
  if (const int error = inbox.stat(file, entry.attr); error != 0) return error;
  // JavaScript removes what was handed in. A notice about that would queue for the lock of a directory that is busy
  // with renames, so such a name is looked up each time instead.
  entry.entry_timeout = (entry.attr.st_mode & S_IWUSR) != 0 ? core.cache_seconds : 0;
  return 0;
}

int inbox_of(const Core& core, Inode parent, std::shared_ptr<Inbox>& inbox) {
  View view;
  if (const int error = core.table.find(parent, view); error != 0) return error;
  inbox = view.inbox;
  return 0;
}

int lookup(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name) {
  fuse_entry_param entry{};
  View view;
  int error = core.table.lookup(parent, name, view);
  if (error == 0) {
    error = entry_of(core, view, entry);
    if (error != 0) return error == ESTALE ? ENOENT : error;
  } else if (error == ENOTDIR) {
    std::shared_ptr<Inbox> inbox;
    if (const int gone = inbox_of(core, parent, inbox); gone != 0) return gone;
    if (!inbox) return ENOTDIR;
    SharedInboxFile file;
    error = inbox->lookup(name, file);
    if (error == 0) error = entry_of(core, *inbox, *file, entry);
    if (error == ESTALE) return ENOENT;
  }
  if (error == ENOENT) {
    entry = {};
    entry.entry_timeout = core.cache_seconds;  // inode 0: the kernel remembers that there is no such name
  } else if (error != 0) {
    return error;
  }
  fuse_reply_entry(request, &entry);
  return 0;
}

int getattr(Core& core, fuse_req_t request, fuse_ino_t id, fuse_file_info* /*handle*/) {
  struct stat attributes{};
  double timeout = 0;
  if (is_inbox_file(id)) {
    SharedInboxFile file;
    std::shared_ptr<Inbox> inbox;
    if (const int error = find_inbox_file(core, id, file, inbox); error != 0) return error;
    if (const int error = inbox->stat(*file, attributes); error != 0) return error;
  } else {
    View view;
    if (const int error = core.table.find(id, view); error != 0) return error;
    if (const int error = attributes_of(view, attributes); error != 0) return error;
    if (view.kind != Kind::File) timeout = core.cache_seconds;
  }
  fuse_reply_attr(request, &attributes, timeout);
  return 0;
}

int open(Core& core, fuse_req_t request, fuse_ino_t id, fuse_file_info* handle) {
  handle->fh = 0;
  if (is_inbox_file(id)) return open_inbox_file(core, request, id, *handle);
  View view;
  if (const int error = core.table.find(id, view); error != 0) return error;
  if (view.kind == Kind::Control) {
    handle->direct_io = 1;  // a write is one change, and a read never sees a page from before it
    fuse_reply_open(request, handle);
    return 0;
  }
  if (wants_to_change(*handle)) return EROFS;
  if (view.kind == Kind::Follow) return open_follow(core, request, id, *handle);
  if (view.kind == Kind::Bytes) {
    if (const int error = core.table.open_version(id); error != 0) return error;
    handle->keep_cache = 1;
    if (fuse_reply_open(request, handle) == -ENOENT) core.table.release_version(id);
    return 0;
  }
  // Cached pages of a file that grows behind the kernel's back would be older than the file for a moment.
  if (view.kind == Kind::File) handle->direct_io = 1;
  fuse_reply_open(request, handle);
  return 0;
}

int release(Core& core, fuse_req_t request, fuse_ino_t id, fuse_file_info* handle) {
  if (is_inbox_file(id)) {
    SharedInboxFile file;
    std::shared_ptr<Inbox> inbox;
    if (find_inbox_file(core, id, file, inbox) == 0) inbox->release_file(file);
  } else if (handle->fh != 0) {
    core.followers.release(handle->fh);
  } else if (id > inode_mask) {
    core.table.release_version(id);
  }
  fuse_reply_err(request, 0);
  return 0;
}

int read(Core& core, fuse_req_t request, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* handle) {
  size = std::min(size, reply_bytes);
  if (is_inbox_file(id)) {
    SharedInboxFile file;
    std::shared_ptr<Inbox> inbox;
    if (const int error = find_inbox_file(core, id, file, inbox); error != 0) return error;
    if (const int error = inbox->read(*file, reply_buffer, size, offset); error != 0) return error;
    fuse_reply_buf(request, reply_buffer, size);
    return 0;
  }
  if (handle->fh != 0) return read_follow(core, request, id, size, offset, *handle);
  View view;
  int error = core.table.find(id, view);
  // A handle from before a hand-over to a new process may name a version that process never had: it reads the newest.
  if (error == ESTALE && id > inode_mask) error = core.table.find_newest(id & inode_mask, view);
  if (error != 0) return error;
  if (view.kind == Kind::File) return read_backing(core, request, view, size, offset);
  if (!view.bytes) return EISDIR;
  const auto start = static_cast<std::size_t>(std::clamp<off_t>(offset, 0, static_cast<off_t>(view.bytes->size())));
  fuse_reply_buf(request, view.bytes->data() + start, std::min(size, view.bytes->size() - start));
  return 0;
}

int statfs(Core& core, fuse_req_t request, fuse_ino_t id) {
  struct statvfs result{};
  constexpr unsigned long block = 4096;
  constexpr unsigned long longest_name = 255;
  SharedInboxFile file;
  std::shared_ptr<Inbox> inbox;
  View view;
  if (is_inbox_file(id)) {
    find_inbox_file(core, id, file, inbox);
  } else if (core.table.find(id, view) == 0) {
    inbox = view.inbox;
  }
  if (inbox) {  // files land on a real file system here
    if (const int error = inbox->statfs(result); error != 0) return error;
  } else {
    result.f_bsize = result.f_frsize = block;
    result.f_files = core.table.size();
  }
  result.f_namemax = longest_name;
  fuse_reply_statfs(request, &result);
  return 0;
}

}  // namespace bridle::fuse::handlers
