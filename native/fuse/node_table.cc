#include "node_table.h"

#include <cerrno>
#include <mutex>
#include <utility>

namespace bridle::fuse {
namespace {

constexpr std::int64_t ms_per_second = 1000;
constexpr std::int64_t ns_per_ms = 1'000'000;

}  // namespace

struct Removed {
  std::vector<std::unique_ptr<NodeTable::Node>> nodes;
  std::vector<std::shared_ptr<NodeTable::Version>> versions;
  std::vector<NodeSpec> specs;
};

struct stat View::to_stat() const {
  struct stat result{};
  result.st_ino = inode();
  const bool directory = kind == Kind::Directory || kind == Kind::Inbox;
  result.st_mode = (directory ? S_IFDIR : S_IFREG) | (attributes.mode & 07777);
  result.st_nlink = directory ? 2 : 1;
  result.st_uid = attributes.uid;
  result.st_gid = attributes.gid;
  result.st_blksize = 4096;
  if (bytes) {
    result.st_size = static_cast<off_t>(bytes->size());
    result.st_blocks = (result.st_size + 511) / 512;
  }
  const timespec time{.tv_sec = attributes.time_ms / ms_per_second,
                      .tv_nsec = attributes.time_ms % ms_per_second * ns_per_ms};
  result.st_mtim = result.st_ctim = result.st_atim = time;
  return result;
}

NodeTable::NodeTable(NodeSpec root) {
  auto node = std::make_unique<Node>();
  node->parent = root.inode;
  node->children = std::make_unique<Children>();
  node->spec = std::move(root);
  const Inode inode = node->spec.inode;
  nodes_.emplace(inode, std::move(node));
}

NodeTable::~NodeTable() = default;

View NodeTable::view_of(const Node& node) {
  View view{.id = node.spec.inode,
            .generation = 0,
            .kind = node.spec.kind,
            .attributes = node.spec.attributes,
            .bytes = node.spec.bytes,
            .path = node.spec.path,
            .inbox = node.spec.inbox};
  if (node.version) {
    view.id = node.version->id;
    view.generation = node.version->generation;
  }
  return view;
}

const NodeTable::Node* NodeTable::find_node(Inode inode) const {
  auto found = nodes_.find(inode);
  return found == nodes_.end() ? nullptr : found->second.get();
}

const NodeTable::Children* NodeTable::children_of(Inode inode, int& error) const {
  const Node* node = find_node(inode);
  error = node == nullptr ? ESTALE : ENOTDIR;
  return node == nullptr ? nullptr : node->children.get();
}

int NodeTable::find(Inode id, View& view) const {
  const std::shared_lock lock(mutex_);
  const Node* node = find_node(id & inode_mask);
  if (node != nullptr && (node->version ? node->version->id : node->spec.inode) == id) {
    view = view_of(*node);
    return 0;
  }
  auto kept = kept_.find(id);
  if (kept == kept_.end()) return ESTALE;
  const Version& version = *kept->second;
  view = {.id = id,
          .generation = version.generation,
          .kind = Kind::Bytes,
          .attributes = version.attributes,
          .bytes = version.bytes,
          .path = nullptr,
          .inbox = nullptr};
  return 0;
}

int NodeTable::find_newest(Inode inode, View& view) const {
  const std::shared_lock lock(mutex_);
  const Node* node = find_node(inode);
  if (node == nullptr) return ESTALE;
  view = view_of(*node);
  return 0;
}

int NodeTable::lookup(Inode parent, std::string_view name, View& view) const {
  const std::shared_lock lock(mutex_);
  int error = 0;
  const Children* children = children_of(parent, error);
  if (children == nullptr) return error;
  auto found = children->by_name.find(name);
  if (found == children->by_name.end()) {
    if (!children->missed.load(std::memory_order_relaxed)) children->missed.store(true, std::memory_order_relaxed);
    return ENOENT;
  }
  view = view_of(*find_node(found->second));
  return 0;
}

int NodeTable::open_version(Inode id) {
  const std::shared_lock lock(mutex_);
  const Node* node = find_node(id & inode_mask);
  if (node == nullptr || !node->version || node->version->id != id) return ESTALE;
  node->version->opens.fetch_add(1, std::memory_order_relaxed);
  return 0;
}

void NodeTable::release_version(Inode id) {
  {
    const std::shared_lock lock(mutex_);
    const Node* node = find_node(id & inode_mask);
    if (node != nullptr && node->version && node->version->id == id) {
      node->version->opens.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
  }
  std::shared_ptr<Version> last;  // freed after the lock is gone
  const std::unique_lock lock(mutex_);
  auto kept = kept_.find(id);
  if (kept == kept_.end() || kept->second->opens.fetch_sub(1, std::memory_order_relaxed) > 1) return;
  last = std::move(kept->second);
  kept_.erase(kept);
}

std::size_t NodeTable::size() const {
  const std::shared_lock lock(mutex_);
  return nodes_.size();
}

std::shared_ptr<NodeTable::Version> NodeTable::make_version(const NodeSpec& spec) {
  Inode id = 0;
  do {
    const Inode slot = ++versions_made_ % version_count + 1;
    id = slot << version_shift | spec.inode;
  } while (kept_.contains(id) && kept_.size() < version_count);
  return std::make_shared<Version>(id, versions_made_, spec.attributes, spec.bytes);
}

void NodeTable::retire(std::shared_ptr<Version> version, Removed& removed) {
  if (!version) return;
  if (version->opens.load(std::memory_order_relaxed) > 0) {
    const Inode id = version->id;
    kept_.emplace(id, std::move(version));
  } else {
    removed.versions.push_back(std::move(version));
  }
}

void NodeTable::detach(Node& parent, Inode child, Removed& removed) {
  auto entry = parent.children->by_inode.find(child);
  parent.children->by_name.erase(entry->second);
  parent.children->by_inode.erase(entry);
  std::vector<Inode> subtree{child};
  while (!subtree.empty()) {
    auto found = nodes_.find(subtree.back());
    subtree.pop_back();
    std::unique_ptr<Node> node = std::move(found->second);
    nodes_.erase(found);
    retire(std::move(node->version), removed);
    if (node->children) {
      for (const auto& [inode, name] : node->children->by_inode) subtree.push_back(inode);
    }
    removed.nodes.push_back(std::move(node));
  }
}

NodeTable::Edit::Edit(NodeTable& table) : table_(table), removed_(std::make_unique<Removed>()), lock_(table.mutex_) {}

NodeTable::Edit::~Edit() { lock_.unlock(); }

int NodeTable::Edit::put(Inode parent, const std::string& name, NodeSpec spec) {
  auto found = table_.nodes_.find(parent);
  if (found == table_.nodes_.end()) return ENOENT;
  Node& directory = *found->second;
  if (!directory.children) return ENOTDIR;
  const Inode inode = spec.inode;
  const Node* holder = table_.find_node(inode);
  if (holder != nullptr && (holder->parent != parent || holder->name != name || inode == root_inode)) return EEXIST;
  if (spec.kind == Kind::File || spec.kind == Kind::Follow) stale_files.push_back(inode);

  if (holder != nullptr && holder->spec.kind == spec.kind) {
    Node& node = *table_.nodes_.find(inode)->second;
    if (spec.kind == Kind::Bytes) {
      std::shared_ptr<Version> next = table_.make_version(spec);
      std::swap(node.version, next);
      table_.retire(std::move(next), *removed_);
      notices.push_back({Notice::What::Entry, parent, name});
    } else {
      const auto what = spec.kind == Kind::File ? Notice::What::Content : Notice::What::Attributes;
      notices.push_back({what, inode, {}});
    }
    std::swap(node.spec, spec);
    removed_->specs.push_back(std::move(spec));
    return 0;
  }

  auto taken = directory.children->by_name.find(name);
  const bool replaces = taken != directory.children->by_name.end();
  if (replaces) table_.detach(directory, taken->second, *removed_);
  auto node = std::make_unique<Node>();
  node->parent = parent;
  node->name = name;
  if (spec.kind == Kind::Directory) node->children = std::make_unique<Children>();
  if (spec.kind == Kind::Bytes) node->version = table_.make_version(spec);
  node->spec = std::move(spec);
  table_.nodes_.emplace(inode, std::move(node));
  auto entry = directory.children->by_inode.emplace(inode, name).first;
  directory.children->by_name.emplace(entry->second, inode);
  if (replaces || directory.children->missed.load(std::memory_order_relaxed)) {
    notices.push_back({Notice::What::Entry, parent, name});
  }
  return 0;
}

int NodeTable::Edit::remove(Inode parent, const std::string& name) {
  auto found = table_.nodes_.find(parent);
  if (found == table_.nodes_.end()) return ENOENT;
  if (!found->second->children) return ENOTDIR;
  auto taken = found->second->children->by_name.find(name);
  if (taken == found->second->children->by_name.end()) return ENOENT;
  table_.detach(*found->second, taken->second, *removed_);
  notices.push_back({Notice::What::Entry, parent, name});
  return 0;
}

}  // namespace bridle::fuse
