#include <cerrno>

#include "handlers.h"
#include "names.h"

namespace bridle::fuse::handlers {
namespace {

/// Only regular files by open(O_CREAT) can be made in an inbox, and nothing in a published directory.
int refuse_to_make(const Core& core, Inode parent) {
  std::shared_ptr<Inbox> inbox;
  if (const int error = inbox_of(core, parent, inbox); error != 0) return error;
  return inbox ? EPERM : EROFS;
}

}  // namespace

int setattr(Core& core, fuse_req_t request, fuse_ino_t id, struct stat* attributes, int changes,
            fuse_file_info* /*handle*/) {
  struct stat result{};
  if (is_inbox_file(id)) {
    SharedInboxFile file;
    std::shared_ptr<Inbox> inbox;
    int error = find_inbox_file(core, id, file, inbox);
    if (error == 0 && (changes & FUSE_SET_ATTR_SIZE) != 0) error = inbox->truncate(*file, attributes->st_size);
    if (error == 0) error = inbox->set_attributes(*file, *attributes, changes);
    if (error == 0) error = inbox->stat(*file, result);
    if (error != 0) return error;
    fuse_reply_attr(request, &result, 0);
    return 0;
  }
  View view;
  if (const int error = core.table.find(id, view); error != 0) return error;
  if ((changes & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) return EPERM;
  if ((changes & FUSE_SET_ATTR_SIZE) == 0) return EPERM;
  if (view.kind != Kind::Control) return EROFS;
  // A shell truncates before it writes. The value changes by the write alone, so this has no effect.
  if (attributes->st_size != 0) return EINVAL;
  if (const int error = attributes_of(view, result); error != 0) return error;
  fuse_reply_attr(request, &result, core.cache_seconds);
  return 0;
}

int create(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* handle) {
  std::shared_ptr<Inbox> inbox;
  if (const int error = inbox_of(core, parent, inbox); error != 0) return error;
  if (!inbox) return EROFS;
  if (const int error = check_name(name); error != 0) return error;
  if (is_request_name(name)) return EPERM;  // only a rename hands a request in
  const fuse_ctx& caller = *fuse_req_ctx(request);
  SharedInboxFile file;
  if (const int error = inbox->create(name, mode, caller.uid, caller.gid, file); error != 0) return error;
  fuse_entry_param entry{};
  if (const int error = entry_of(core, *inbox, *file, entry); error != 0) {
    inbox->release_file(file);
    return error;
  }
  handle->fh = 0;
  if (fuse_reply_create(request, &entry, handle) == -ENOENT) inbox->release_file(file);
  return 0;
}

int unlink(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name) {
  std::shared_ptr<Inbox> inbox;
  if (const int error = inbox_of(core, parent, inbox); error != 0) return error;
  if (!inbox) return EROFS;
  if (const int error = inbox->unlink(name); error != 0) return error;
  fuse_reply_err(request, 0);
  return 0;
}

int rmdir(Core& core, fuse_req_t /*request*/, fuse_ino_t parent, const char* /*name*/) {
  return refuse_to_make(core, parent);
}

int mknod(Core& core, fuse_req_t /*request*/, fuse_ino_t parent, const char* /*name*/, mode_t /*mode*/,
          dev_t /*device*/) {
  return refuse_to_make(core, parent);
}

int symlink(Core& core, fuse_req_t /*request*/, const char* /*target*/, fuse_ino_t parent, const char* /*name*/) {
  return refuse_to_make(core, parent);
}

int link(Core& core, fuse_req_t /*request*/, fuse_ino_t /*id*/, fuse_ino_t parent, const char* /*name*/) {
  return refuse_to_make(core, parent);
}

}  // namespace bridle::fuse::handlers
