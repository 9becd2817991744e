// mount-server MOUNTPOINT BACKING CACHE_SECONDS: the tree of bench/mount/tree.mjs by the plainest server that libfuse's
// low-level interface allows: one thread, everything in arrays. Prints `ready`; commands come on standard input:
// `changes COUNT MICROSECONDS` replaces `latest` so often and prints the times; its end unmounts.
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kRoot = FUSE_ROOT_ID, kDirectory, kInbox, kBig, kLatest, kFirstFile, kFiles = 1000, kFileBytes = 4096 };
enum { kLatestBytes = 32, kMaxOpen = 64 };
static const fuse_ino_t kInboxBit = (fuse_ino_t)1 << 63;

static const struct {
  const char* name;
  fuse_ino_t node;
} root_entries[] = {{"d", kDirectory}, {"inbox", kInbox}, {"big", kBig}, {"latest", kLatest}};
enum { kRootEntries = sizeof root_entries / sizeof root_entries[0] };

static double cache_seconds;
static int inbox;  // descriptor of its backing directory
static int big;
static char content[kFileBytes];
static char names[kFiles][8];
static char latest[kLatestBytes] = "0";
static pthread_mutex_t latest_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct fuse_session* session;
// Files that clients made in the inbox, until they close them.
static struct {
  fuse_ino_t node;  // 0 in a free place
  int fd;
} opened[kMaxOpen];

static void Check(int failed, const char* what) {
  if (!failed) return;
  perror(what);
  exit(1);
}

static int Attributes(fuse_ino_t node, struct stat* result) {
  memset(result, 0, sizeof *result);
  if (node == kBig && fstat(big, result) != 0) return errno;
  const int is_directory = node == kRoot || node == kDirectory || node == kInbox;
  if (!is_directory && (node < kBig || node >= kFirstFile + kFiles)) return ENOENT;
  result->st_ino = node;
  result->st_mode = is_directory ? S_IFDIR | 0777 : S_IFREG | 0444;
  result->st_nlink = is_directory ? 2 : 1;
  result->st_uid = getuid();
  result->st_gid = getgid();
  if (node >= kFirstFile) result->st_size = kFileBytes;
  if (node == kLatest) result->st_size = kLatestBytes;
  return 0;
}

static void Entry(fuse_ino_t node, struct fuse_entry_param* entry) {
  memset(entry, 0, sizeof *entry);
  entry->ino = node;
  entry->entry_timeout = cache_seconds;
  entry->attr_timeout = node == kBig ? 0 : cache_seconds;
  Attributes(node, &entry->attr);
}

static int OpenedAttributes(fuse_ino_t node, struct stat* result) {
  for (int i = 0; i < kMaxOpen; i++) {
    if (opened[i].node == node) return fstat(opened[i].fd, result) == 0 ? 0 : errno;
  }
  return ESTALE;
}

static int InboxEntry(const char* name, struct fuse_entry_param* entry) {
  memset(entry, 0, sizeof *entry);
  if (fstatat(inbox, name, &entry->attr, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  entry->ino = kInboxBit | entry->attr.st_ino;
  return 0;
}

static fuse_ino_t Child(fuse_ino_t parent, const char* name) {
  if (parent == kDirectory && name[0] == 'f' && strlen(name) == 5) {
    const int number = atoi(name + 1);
    return number < kFiles ? (fuse_ino_t)(kFirstFile + number) : 0;
  }
  for (int i = 0; parent == kRoot && i < kRootEntries; i++) {
    if (strcmp(name, root_entries[i].name) == 0) return root_entries[i].node;
  }
  return 0;
}

static void Lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  struct fuse_entry_param entry = {.entry_timeout = cache_seconds};
  if (parent == kInbox) {
    const int error = InboxEntry(name, &entry);
    if (error == 0) {
      fuse_reply_entry(request, &entry);
    } else {
      fuse_reply_err(request, error);
    }
    return;
  }
  const fuse_ino_t node = Child(parent, name);
  if (node != 0) Entry(node, &entry);
  fuse_reply_entry(request, &entry);
}

static void Getattr(fuse_req_t request, fuse_ino_t node, struct fuse_file_info* handle) {
  (void)handle;
  struct stat attributes;
  const int error =
      (node & kInboxBit) != 0 ? OpenedAttributes(node, &attributes) : Attributes(node, &attributes);
  if (error == 0) {
    fuse_reply_attr(request, &attributes, node == kBig ? 0 : cache_seconds);
  } else {
    fuse_reply_err(request, error);
  }
}

static void Open(fuse_req_t request, fuse_ino_t node, struct fuse_file_info* handle) {
  handle->keep_cache = node >= kLatest;
  handle->direct_io = node == kLatest;
  fuse_reply_open(request, handle);
}

static void Read(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info* handle) {
  (void)handle;
  if (node == kBig) {
    static char part[1 << 20];
    const ssize_t length = pread(big, part, size < sizeof part ? size : sizeof part, offset);
    if (length < 0) {
      fuse_reply_err(request, errno);
    } else {
      fuse_reply_buf(request, part, (size_t)length);
    }
    return;
  }
  const size_t all = node == kLatest ? kLatestBytes : kFileBytes;
  const size_t start = (size_t)offset < all ? (size_t)offset : all;
  const size_t length = size < all - start ? size : all - start;
  if (node == kLatest) {
    pthread_mutex_lock(&latest_mutex);
    fuse_reply_buf(request, latest + start, length);
    pthread_mutex_unlock(&latest_mutex);
  } else {
    fuse_reply_buf(request, content + start, length);
  }
}

static void List(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, int plus) {
  char* const reply = malloc(size);
  Check(reply == NULL, "malloc");
  size_t used = 0;
  const off_t count = node == kRoot ? kRootEntries : node == kDirectory ? kFiles : 0;
  for (off_t i = offset; i < count; i++) {
    const char* const name = node == kRoot ? root_entries[i].name : names[i];
    struct fuse_entry_param entry;
    Entry(node == kRoot ? root_entries[i].node : (fuse_ino_t)(kFirstFile + i), &entry);
    const size_t needed = plus ? fuse_add_direntry_plus(request, reply + used, size - used, name, &entry, i + 1)
                               : fuse_add_direntry(request, reply + used, size - used, name, &entry.attr, i + 1);
    if (needed > size - used) break;
    used += needed;
  }
  fuse_reply_buf(request, reply, used);
  free(reply);
}

static void Readdir(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info* handle) {
  (void)handle;
  List(request, node, size, offset, 0);
}

static void ReaddirPlus(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info* handle) {
  (void)handle;
  List(request, node, size, offset, 1);
}

static void Create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, struct fuse_file_info* handle) {
  struct fuse_entry_param entry;
  int place = 0;
  while (place < kMaxOpen && opened[place].node != 0) place++;
  int error = parent != kInbox ? EROFS : place == kMaxOpen ? ENFILE : 0;
  if (error == 0) {
    const int fd = openat(inbox, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    error = fd < 0 ? errno : InboxEntry(name, &entry);
    opened[place].node = error == 0 ? entry.ino : 0;
    opened[place].fd = fd;
    handle->fh = (uint64_t)place;
  }
  if (error == 0) {
    fuse_reply_create(request, &entry, handle);
  } else {
    fuse_reply_err(request, error);
  }
}

static void Write(fuse_req_t request, fuse_ino_t node, const char* data, size_t size, off_t offset,
                  struct fuse_file_info* handle) {
  (void)node;
  const ssize_t length = pwrite(opened[handle->fh].fd, data, size, offset);
  if (length < 0) {
    fuse_reply_err(request, errno);
  } else {
    fuse_reply_write(request, (size_t)length);
  }
}

static void Release(fuse_req_t request, fuse_ino_t node, struct fuse_file_info* handle) {
  if ((node & kInboxBit) != 0) {
    close(opened[handle->fh].fd);
    opened[handle->fh].node = 0;
  }
  fuse_reply_err(request, 0);
}

static void Fsync(fuse_req_t request, fuse_ino_t node, int data_only, struct fuse_file_info* handle) {
  (void)node;
  (void)data_only;
  fuse_reply_err(request, fsync(opened[handle->fh].fd) == 0 ? 0 : errno);
}

static void FsyncDirectory(fuse_req_t request, fuse_ino_t node, int data_only, struct fuse_file_info* handle) {
  (void)data_only;
  (void)handle;
  fuse_reply_err(request, node != kInbox || fsync(inbox) == 0 ? 0 : errno);
}

static void Rename(fuse_req_t request, fuse_ino_t parent, const char* from, fuse_ino_t new_parent, const char* to,
                   unsigned int flags) {
  if (parent != kInbox || new_parent != kInbox || flags != 0) {
    fuse_reply_err(request, EROFS);
    return;
  }
  const int error = renameat(inbox, from, inbox, to) == 0 ? 0 : errno;
  char taken[256];
  snprintf(taken, sizeof taken, "%s", to);  // the request is gone after the reply
  fuse_reply_err(request, error);
  if (error == 0) unlinkat(inbox, taken, 0);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = Lookup,   .getattr = Getattr, .open = Open,           .read = Read,         .readdir = Readdir,
    .create = Create,   .write = Write,     .release = Release,     .fsync = Fsync,       .fsyncdir = FsyncDirectory,
    .rename = Rename,   .readdirplus = ReaddirPlus,
};

static int64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void Change(long count, useconds_t pause) {
  for (long version = 1; version <= count; version++) {
    usleep(pause);
    const int64_t changed = Now();
    pthread_mutex_lock(&latest_mutex);
    snprintf(latest, sizeof latest, "%ld", version);
    pthread_mutex_unlock(&latest_mutex);
    fuse_lowlevel_notify_inval_inode(session, kLatest, 0, 0);
    printf("%s%" PRId64, version == 1 ? "[" : ",", changed);
  }
  puts("]");
}

static void* Obey(void* unused) {
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) {
    long count = 0;
    unsigned int pause = 0;
    if (sscanf(line, "changes %ld %u", &count, &pause) == 2) Change(count, pause);
    // There is no JavaScript that could be busy.
    if (strncmp(line, "stall", 5) == 0) puts("stalled");
    fflush(stdout);
  }
  kill(getpid(), SIGTERM);
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  cache_seconds = atof(argv[3]);
  Check(chdir(argv[2]) != 0, argv[2]);
  inbox = open("inbox", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  big = open("big", O_RDONLY | O_CLOEXEC);
  Check(inbox < 0 || big < 0, "backing");
  memset(content, 'x', sizeof content);
  for (int i = 0; i < kFiles; i++) snprintf(names[i], sizeof names[i], "f%04d", i);

  char* words[] = {argv[0], "-o", "default_permissions,fsname=bridle-bench", NULL};
  struct fuse_args arguments = FUSE_ARGS_INIT(3, words);
  session = fuse_session_new(&arguments, &operations, sizeof operations, NULL);
  if (session == NULL || fuse_set_signal_handlers(session) != 0 || fuse_session_mount(session, argv[1]) != 0) return 1;
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGTERM);
  // The signal that ends the loop has to reach the thread that waits in it.
  pthread_sigmask(SIG_BLOCK, &ours, NULL);
  pthread_t obey;
  Check((errno = pthread_create(&obey, NULL, Obey, NULL)) != 0, "pthread_create");
  pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
  puts("ready");
  fflush(stdout);
  fuse_session_loop(session);
  fuse_session_unmount(session);
  fuse_session_destroy(session);
  return 0;
}
