#include <algorithm>
#include <cerrno>

#include "handlers.h"

namespace bridle::fuse::handlers {
namespace {

// Offset 0 is the start, 1 stands after `.`, 2 after `..`, and n + 2 after the child with inode number n.
constexpr off_t after_dot = 1;
constexpr off_t after_dots = 2;

mode_t type_of(Kind kind) { return kind == Kind::Directory || kind == Kind::Inbox ? S_IFDIR : S_IFREG; }

/// Fills one reply with directory entries, with their attributes when `plus`.
class Listing {
 public:
  Listing(fuse_req_t request, std::size_t room, bool plus)
      : request_(request), room_(std::min(room, reply_bytes)), plus_(plus) {}

  /// @returns false when there is no room left
  bool add(const std::string& name, const fuse_entry_param& entry, off_t next) {
    char* const to = reply_buffer + used_;
    const std::size_t left = room_ - used_;
    const std::size_t needed = plus_ ? fuse_add_direntry_plus(request_, to, left, name.c_str(), &entry, next)
                                     : fuse_add_direntry(request_, to, left, name.c_str(), &entry.attr, next);
    if (needed > left) return false;
    used_ += needed;
    return true;
  }

  /// An entry without attributes: the kernel asks for them when somebody wants them.
  bool add_plain(const std::string& name, Inode inode, mode_t type, off_t next) {
    fuse_entry_param entry{};
    entry.attr.st_ino = inode;
    entry.attr.st_mode = type;
    return add(name, entry, next);
  }

  void reply() { fuse_reply_buf(request_, reply_buffer, used_); }

 private:
  fuse_req_t request_;
  const std::size_t room_;
  const bool plus_;
  std::size_t used_ = 0;
};

int list(Core& core, fuse_req_t request, Inode id, std::size_t size, off_t offset, bool plus) {
  std::shared_ptr<Inbox> inbox;
  if (const int error = inbox_of(core, id, inbox); error != 0) return error;
  Listing listing(request, size, plus);
  if (offset < after_dot) listing.add_plain(".", id, S_IFDIR, after_dot);
  if (offset < after_dots) listing.add_plain("..", id, S_IFDIR, after_dots);
  const auto after = static_cast<std::uint64_t>(std::max<off_t>(offset - after_dots, 0));
  if (inbox) {
    inbox->list(after, [&](const std::string& name, Inode file, std::uint64_t place) {
      return listing.add_plain(name, file, S_IFREG, static_cast<off_t>(place) + after_dots);
    });
  } else {
    const int error = core.table.list(id, after, [&](const std::string& name, const View& view, Inode place) {
      const off_t next = static_cast<off_t>(place) + after_dots;
      fuse_entry_param entry{};
      // The size of a backing file would have to come from the disk, and the table is locked here.
      if (plus && view.kind != Kind::File && entry_of(core, view, entry) == 0) return listing.add(name, entry, next);
      return listing.add_plain(name, view.inode(), type_of(view.kind), next);
    });
    if (error != 0) return error;
  }
  listing.reply();
  return 0;
}

}  // namespace

int readdir(Core& core, fuse_req_t request, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* /*handle*/) {
  return list(core, request, id, size, offset, false);
}

int readdirplus(Core& core, fuse_req_t request, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* /*handle*/) {
  return list(core, request, id, size, offset, true);
}

}  // namespace bridle::fuse::handlers
