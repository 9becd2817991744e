#pragma once

#include <sys/stat.h>

#include "core.h"
#include "fuse_api.h"

/// One handler each for the operations of the mount. A handler returns an errno that is then replied, or 0 when it has
/// replied or when somebody else will. It never waits for JavaScript.
namespace bridle::fuse::handlers {

// handlers_read.cc: answered from the node table
int lookup(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name);
int getattr(Core& core, fuse_req_t request, fuse_ino_t id, fuse_file_info* handle);
int open(Core& core, fuse_req_t request, fuse_ino_t id, fuse_file_info* handle);
int release(Core& core, fuse_req_t request, fuse_ino_t id, fuse_file_info* handle);
int read(Core& core, fuse_req_t request, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* handle);
int statfs(Core& core, fuse_req_t request, fuse_ino_t id);

// handlers_follow.cc: `follow` files
int poll(Core& core, fuse_req_t request, fuse_ino_t id, fuse_file_info* handle, fuse_pollhandle* waiting);
int open_follow(Core& core, fuse_req_t request, Inode inode, fuse_file_info& handle);
int read_follow(Core& core, fuse_req_t request, Inode inode, size_t size, off_t offset, const fuse_file_info& handle);

// handlers_list.cc
int readdir(Core& core, fuse_req_t request, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* handle);
int readdirplus(Core& core, fuse_req_t request, fuse_ino_t id, size_t size, off_t offset, fuse_file_info* handle);

// handlers_change.cc: changes of files and directories that need no decision
int setattr(Core& core, fuse_req_t request, fuse_ino_t id, struct stat* attributes, int changes,
            fuse_file_info* handle);
int create(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* handle);
int unlink(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name);
int rmdir(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name);
int mknod(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t device);
int symlink(Core& core, fuse_req_t request, const char* target, fuse_ino_t parent, const char* name);
int link(Core& core, fuse_req_t request, fuse_ino_t id, fuse_ino_t parent, const char* name);

// handlers_ask.cc: put to JavaScript
int mkdir(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode);
int rename(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
           const char* new_name, unsigned int flags);
int write(Core& core, fuse_req_t request, fuse_ino_t id, const char* data, size_t size, off_t offset,
          fuse_file_info* handle);
int fsync(Core& core, fuse_req_t request, fuse_ino_t id, int data_only, fuse_file_info* handle);

/// What the handlers share. Each returns 0 or an errno.
bool is_inbox_file(Inode id);
int find_inbox_file(Core& core, Inode id, SharedInboxFile& file, std::shared_ptr<Inbox>& inbox);
/// Descriptor of the backing file of a `file` or `follow` node.
int backing_descriptor(Core& core, const View& view, SharedDescriptor& result);
int attributes_of(const View& view, struct stat& result);
int entry_of(const Core& core, const View& view, fuse_entry_param& entry);
int entry_of(const Core& core, const Inbox& inbox, InboxFile& file, fuse_entry_param& entry);
/// Of a parent directory: 0 and its inbox, or a null inbox when it is an ordinary directory.
int inbox_of(const Core& core, Inode parent, std::shared_ptr<Inbox>& inbox);

}  // namespace bridle::fuse::handlers
