#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "descriptor.h"
#include "descriptor_cache.h"
#include "node_table.h"

// Lock order: Inbox::mutex_, then InboxFile::io, then the locks of InboxIndex and DescriptorCache.

namespace bridle::fuse {

inline constexpr std::size_t max_temporaries = 4096;
inline constexpr off_t max_temporary_bytes = off_t{16} << 20;

/// A file in an inbox. Its backing file has the same name in the backing directory, so it survives this process.
struct InboxFile {
  enum class State : std::uint8_t {
    Temporary,  // the client may do what it likes
    Frozen,     // its rename waits for JavaScript: what was handed over is what is there
    HandedIn    // accepted: never changes again
  };

  InboxFile(Inode node, std::uint64_t number, std::string label, const std::shared_ptr<Inbox>& directory,
            State initial);

  const Inode id;
  /// Tells files apart that got the same backing inode number one after the other.
  const std::uint64_t generation;
  const std::weak_ptr<Inbox> inbox;
  std::shared_mutex io;   // shared by a write, exclusive for a change of state
  State state;            // under io
  std::string name;       // under Inbox::mutex_
  bool unlinked = false;  // under Inbox::mutex_: it lives in the graveyard until its last close
  std::atomic<std::uint32_t> opens{0};
};

using SharedInboxFile = std::shared_ptr<InboxFile>;

/// Files of all inboxes by node id.
class InboxIndex {
 public:
  SharedInboxFile find(Inode id) const;
  void add(const SharedInboxFile& file);
  void erase(Inode id);
  /// Inode numbers are unique on one device only, so all backing directories must be on the same.
  bool accept_device(dev_t device);

 private:
  mutable std::shared_mutex mutex_;
  std::optional<dev_t> device_;
  std::unordered_map<Inode, std::weak_ptr<InboxFile>> files_;
};

/**
 * A hand-off directory over a real directory that nobody else changes.
 *
 * A client can put only regular files in it (anything else is EPERM at creation), so a fifo, a symlink or a directory
 * can never be handed in. Functions return 0 or an errno. Descriptors are opened by current name for each request, or
 * taken from the cache.
 */
class Inbox : public std::enable_shared_from_this<Inbox> {
 public:
  /**
   * Opens the backing directory (makes it when missing), takes over the regular files in it and empties the graveyard.
   * @throws SystemError
   */
  static std::shared_ptr<Inbox> open(Inode inode, const std::string& path, InboxIndex& index,
                                     DescriptorCache& descriptors);
  Inbox(Inode inode, std::string path, Descriptor directory, InboxIndex& index, DescriptorCache& descriptors);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  /// Inode number of the inbox's node.
  [[nodiscard]] Inode inode() const { return inode_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  int lookup(const std::string& name, SharedInboxFile& file) const;
  /// As NodeTable::list, in the order of the backing inode numbers.
  template <typename Visit>
  void list(std::uint64_t offset, Visit&& visit) const;
  int statfs(struct statvfs& result) const;

  /// @param owner uid and gid of the caller; the file becomes theirs when this process may give files away
  int create(const std::string& name, mode_t mode, uid_t uid, gid_t gid, SharedInboxFile& file);
  int unlink(const std::string& name);
  /// Renames a temporary file to a name that hands nothing in. @param replace false as for RENAME_NOREPLACE
  int rename(const std::string& from, const std::string& to, bool replace);
  /// Removes a file whatever its state.
  int consume(const std::string& name);

  /// Makes a temporary file unchangeable while JavaScript decides about it.
  int freeze(const std::string& name, SharedInboxFile& file);
  static void unfreeze(InboxFile& file);
  /// Gives a frozen file its request name, for good. When the name is taken it is a replay: the older file stays.
  int hand_in(InboxFile& file, const std::string& request_name);

  /// Counts an open. @returns 0, or ESTALE when the file was removed meanwhile
  int open_file(InboxFile& file, bool writing) const;
  void release_file(const SharedInboxFile& file);
  int stat(InboxFile& file, struct stat& result) const;
  /// @param length in: room; out: bytes read
  int read(InboxFile& file, char* to, std::size_t& length, off_t offset) const;
  int write(InboxFile& file, const char* from, std::size_t length, off_t offset) const;
  int truncate(InboxFile& file, off_t size) const;
  /// Changes mode, owner or times. @param changes bits as in FUSE_SET_ATTR_*
  int set_attributes(InboxFile& file, const struct stat& attributes, int changes) const;
  /// Runs an action with the file's descriptor unless the file is frozen (EBUSY) or handed in (EROFS).
  template <typename Action>
  int change(InboxFile& file, Action&& action) const;
  int descriptor(InboxFile& file, SharedDescriptor& result) const;

 private:
  void take_over();
  void empty_graveyard() const;
  SharedInboxFile adopt(const std::string& name, const Descriptor& fd, const struct stat& attributes);
  void forget_name(InboxFile& file);
  int bury(InboxFile& file);
  int drop(InboxFile& file);
  [[nodiscard]] std::string grave(const InboxFile& file) const;
  [[nodiscard]] SharedInboxFile find_name(const std::string& name) const;

  const Inode inode_;
  const std::string path_;
  const Descriptor directory_;
  InboxIndex& index_;
  DescriptorCache& descriptors_;
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, SharedInboxFile> by_inode_;  // backing inode number
  std::unordered_map<std::string, SharedInboxFile> by_name_;
  std::unordered_map<Inode, SharedInboxFile> unlinked_;  // still open
  std::size_t temporaries_ = 0;
};

template <typename Visit>
void Inbox::list(std::uint64_t offset, Visit&& visit) const {
  const std::shared_lock lock(mutex_);
  for (auto file = by_inode_.upper_bound(offset); file != by_inode_.end(); ++file) {
    if (!visit(file->second->name, file->second->id, file->first)) break;
  }
}

template <typename Action>
int Inbox::change(InboxFile& file, Action&& action) const {
  SharedDescriptor fd;
  if (const int error = descriptor(file, fd); error != 0) return error;
  const std::shared_lock lock(file.io);
  if (file.state == InboxFile::State::Frozen) return EBUSY;
  if (file.state == InboxFile::State::HandedIn) return EROFS;
  return action(fd->get());
}

}  // namespace bridle::fuse
