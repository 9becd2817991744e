#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bridle::fuse {

class Inbox;

using Inode = std::uint64_t;
using SharedBytes = std::shared_ptr<const std::string>;

/**
 * What the kernel calls a node id has three parts: bits 0 to 52 are the inode number that JavaScript gave, bits 53 to
 * 62 tell versions of a `bytes` node apart (0 for every other kind), and bit 63 marks a file that a client made in an
 * inbox (bits 0 to 62 are then the inode number of its backing file).
 *
 * Each version is an inode of its own to the kernel, under one st_ino: so an open file keeps the content, the size and
 * the cached pages of the version it opened, and no file handle has to remember anything.
 */
inline constexpr Inode root_inode = 1;
inline constexpr Inode inbox_bit = Inode{1} << 63;
inline constexpr unsigned version_shift = 53;
inline constexpr Inode inode_mask = (Inode{1} << version_shift) - 1;
inline constexpr Inode version_count = 1023;

enum class Kind : std::uint8_t { Directory, Bytes, File, Inbox, Control, Follow };

struct Attributes {
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::int64_t time_ms = 0;
};

/** What JavaScript publishes under a name. */
struct NodeSpec {
  Inode inode = 0;
  Kind kind = Kind::Directory;
  Attributes attributes;
  SharedBytes bytes;
  std::shared_ptr<const std::string> path;
  std::shared_ptr<Inbox> inbox;
};

/** One node as one request sees it. */
struct View {
  Inode id = 0;
  std::uint64_t generation = 0;
  Kind kind = Kind::Directory;
  Attributes attributes;
  SharedBytes bytes;
  std::shared_ptr<const std::string> path;
  std::shared_ptr<Inbox> inbox;

  [[nodiscard]] Inode inode() const { return id & inode_mask; }
  /** Attributes for the kernel; the size of a `file` is its backing file's and is left 0 here. */
  [[nodiscard]] struct stat to_stat() const;
};

/** What the kernel must forget after a change. */
struct Notice {
  enum class What : std::uint8_t { Entry, Attributes, Content };
  What what;
  Inode inode;
  std::string name;
};

struct Removed;

/**
 * The published tree. Many requests read it at once; JavaScript's thread alone changes it.
 *
 * Lock: mutex_, taken last: nothing else is locked and no file is touched while it is held.
 */
class NodeTable {
 public:
  explicit NodeTable(NodeSpec root);
  ~NodeTable();
  NodeTable(const NodeTable&) = delete;
  NodeTable& operator=(const NodeTable&) = delete;

  /** @returns 0, or ESTALE when this version or node is no longer published and nobody has it open. */
  int find(Inode id, View& view) const;
  /** The newest version of a node. @returns 0 or ESTALE. */
  int find_newest(Inode inode, View& view) const;
  /** @returns 0, ENOENT, ENOTDIR, or ESTALE when the parent is gone. */
  int lookup(Inode parent, std::string_view name, View& view) const;
  /** Counts an open of a `bytes` version. @returns 0, or ESTALE when it is not the newest version. */
  int open_version(Inode id);
  void release_version(Inode id);
  /**
   * Calls `visit(name, view, next_offset)` for the children after `offset` in the order of their inode numbers, until
   * it returns false. Offsets are made of inode numbers, so they outlive changes of the directory and of the server.
   */
  template <typename Visit>
  int list(Inode parent, std::uint64_t offset, Visit&& visit) const;

  [[nodiscard]] std::size_t size() const;

  /** Holds the table for a series of changes; what they replaced is freed after the lock is gone. */
  class Edit {
   public:
    explicit Edit(NodeTable& table);
    ~Edit();
    Edit(const Edit&) = delete;
    Edit& operator=(const Edit&) = delete;

    /** @returns 0, ENOENT (no such parent), ENOTDIR, or EEXIST when the inode number is in use elsewhere. */
    int put(Inode parent, const std::string& name, NodeSpec spec);
    /** Removes a name and all below it. @returns 0, ENOENT or ENOTDIR. */
    int remove(Inode parent, const std::string& name);
    std::vector<Notice> notices;
    /** Inodes whose backing file may have been replaced. */
    std::vector<Inode> stale_files;

   private:
    NodeTable& table_;
    std::unique_ptr<Removed> removed_;
    std::unique_lock<std::shared_mutex> lock_;
  };

 private:
  struct Version {
    Version(Inode node, std::uint64_t number, Attributes values, SharedBytes content)
        : id(node), generation(number), attributes(values), bytes(std::move(content)) {}
    const Inode id;
    const std::uint64_t generation;
    const Attributes attributes;
    const SharedBytes bytes;
    std::atomic<std::uint32_t> opens{0};
  };
  struct Children {
    std::map<Inode, std::string> by_inode;
    std::unordered_map<std::string_view, Inode> by_name;  // views into by_inode
    mutable std::atomic<bool> missed{false};              // the kernel may cache that some name does not exist
  };
  struct Node {
    NodeSpec spec;
    Inode parent = 0;
    std::string name;
    std::shared_ptr<Version> version;    // of a bytes node
    std::unique_ptr<Children> children;  // of a directory
  };
  friend struct Removed;

  static View view_of(const Node& node);
  [[nodiscard]] const Node* find_node(Inode inode) const;
  [[nodiscard]] const Children* children_of(Inode inode, int& error) const;
  std::shared_ptr<Version> make_version(const NodeSpec& spec);
  void retire(std::shared_ptr<Version> version, Removed& removed);
  void detach(Node& parent, Inode child, Removed& removed);

  mutable std::shared_mutex mutex_;
  std::unordered_map<Inode, std::unique_ptr<Node>> nodes_;
  std::unordered_map<Inode, std::shared_ptr<Version>> kept_;  // older versions that clients have open, by node id
  std::uint64_t versions_made_ = 0;
};

template <typename Visit>
int NodeTable::list(Inode parent, std::uint64_t offset, Visit&& visit) const {
  const std::shared_lock lock(mutex_);
  int error = 0;
  const Children* children = children_of(parent, error);
  if (children == nullptr) return error;
  for (auto child = children->by_inode.upper_bound(offset); child != children->by_inode.end(); ++child) {
    if (!visit(child->second, view_of(*find_node(child->first)), child->first)) break;
  }
  return 0;
}

}  // namespace bridle::fuse
