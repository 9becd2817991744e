#include <linux/fs.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "handlers.h"
#include "names.h"

namespace bridle::fuse::handlers {
namespace {

/// Content of a frozen file; nothing when it is longer than a request may be.
int read_request(const Inbox& inbox, InboxFile& file, std::optional<std::string>& bytes) {
  struct stat attributes{};
  if (const int error = inbox.stat(file, attributes); error != 0) return error;
  if (attributes.st_size > static_cast<off_t>(max_request_bytes)) return 0;
  std::string content(static_cast<std::size_t>(attributes.st_size), '\0');
  std::size_t length = content.size();
  if (const int error = inbox.read(file, content.data(), length, 0); error != 0) return error;
  content.resize(length);
  bytes = std::move(content);
  return 0;
}

int hand_in(Core& core, fuse_req_t request, const std::shared_ptr<Inbox>& inbox, const std::string& from,
            const std::string& to) {
  SharedInboxFile file;
  if (const int error = inbox->freeze(from, file); error != 0) return error;
  std::optional<std::string> bytes;
  if (const int error = read_request(*inbox, *file, bytes); error != 0) {
    Inbox::unfreeze(*file);
    return error;
  }
  const auto refuse = [file](fuse_req_t waiting, int error) {
    Inbox::unfreeze(*file);
    fuse_reply_err(waiting, error);
  };
  core.pending.ask(
      request,
      {.op = Question::Op::Handoff, .inode = inbox->inode(), .name = to, .temporary = from, .bytes = std::move(bytes)},
      [&core, inbox, file, to, refuse](fuse_req_t waiting, int answer) {
        if (answer != 0) return refuse(waiting, answer);
        const bool posted = core.worker.post([inbox, file, to, refuse, waiting] {
          const int error = inbox->hand_in(*file, to);
          if (error != 0) return refuse(waiting, error);
          fuse_reply_err(waiting, 0);
        });
        if (!posted) refuse(waiting, ESHUTDOWN);
      });
  return 0;
}

}  // namespace

int mkdir(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  std::shared_ptr<Inbox> inbox;
  if (const int error = inbox_of(core, parent, inbox); error != 0) return error;
  if (inbox) return EPERM;
  if (const int error = check_name(name); error != 0) return error;
  constexpr mode_t permission_bits = 07777;
  core.notifier.hold(parent, name);
  core.pending.ask(request, {.op = Question::Op::Mkdir, .inode = parent, .name = name, .mode = mode & permission_bits},
                   [&core, parent, name = std::string(name)](fuse_req_t waiting, int error) {
                     View view;
                     fuse_entry_param entry{};
                     if (error == 0 && (core.table.lookup(parent, name, view) != 0 || entry_of(core, view, entry) != 0))
                       error = EIO;
                     if (error == 0) {
                       fuse_reply_entry(waiting, &entry);
                     } else {
                       fuse_reply_err(waiting, error);
                     }
                     core.notifier.release(parent, name, error != 0);
                   });
  return 0;
}

int rename(Core& core, fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
           const char* new_name, unsigned int flags) {
  std::shared_ptr<Inbox> from;
  std::shared_ptr<Inbox> to;
  if (const int error = inbox_of(core, parent, from); error != 0) return error;
  if (const int error = inbox_of(core, new_parent, to); error != 0) return error;
  if (!from && !to) return EROFS;
  if (parent != new_parent) return EXDEV;
  if ((flags & ~static_cast<unsigned int>(RENAME_NOREPLACE)) != 0) return EINVAL;
  if (const int error = check_name(new_name); error != 0) return error;
  if (is_request_name(new_name)) return hand_in(core, request, from, name, new_name);
  if (const int error = from->rename(name, new_name, flags == 0); error != 0) return error;
  fuse_reply_err(request, 0);
  return 0;
}

int write(Core& core, fuse_req_t request, fuse_ino_t id, const char* data, size_t size, off_t offset,
          fuse_file_info* /*handle*/) {
  if (is_inbox_file(id)) {
    SharedInboxFile file;
    std::shared_ptr<Inbox> inbox;
    if (const int error = find_inbox_file(core, id, file, inbox); error != 0) return error;
    if (const int error = inbox->write(*file, data, size, offset); error != 0) return error;
    fuse_reply_write(request, size);
    return 0;
  }
  View view;
  if (const int error = core.table.find(id, view); error != 0) return error;
  if (view.kind != Kind::Control) return EROFS;
  if (size > max_control_bytes) return EMSGSIZE;
  if (offset != 0) return EINVAL;
  core.pending.ask(request, {.op = Question::Op::Control, .inode = id, .bytes = std::string(data, size)},
                   [size](fuse_req_t waiting, int error) {
                     if (error != 0) {
                       fuse_reply_err(waiting, error);
                     } else {
                       fuse_reply_write(waiting, size);
                     }
                   });
  return 0;
}

int fsync(Core& core, fuse_req_t request, fuse_ino_t id, int /*data_only*/, fuse_file_info* /*handle*/) {
  SharedInboxFile file;
  std::shared_ptr<Inbox> inbox;
  const int error = is_inbox_file(id) ? find_inbox_file(core, id, file, inbox) : inbox_of(core, id, inbox);
  if (error != 0) return error;
  if (inbox) {
    core.pending.ask(request, {.op = Question::Op::Fsync, .inode = inbox->inode()}, fuse_reply_err);
  } else {
    fuse_reply_err(request, 0);
  }
  return 0;
}

}  // namespace bridle::fuse::handlers
