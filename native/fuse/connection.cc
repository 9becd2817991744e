#include "connection.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "native/process/system_error.h"
#include "wait_readable.h"

namespace bridle::fuse {
namespace {

constexpr auto helper_patience = std::chrono::seconds(10);

std::array<Descriptor, 2> make_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw_errno("make a socket pair");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// The errno behind a message of fusermount3, which gives nothing but text.
int meaning_of(const std::string& message) {
  if (message.find("ermission denied") != std::string::npos) return EACCES;
  return message.find("resource busy") != std::string::npos ? EBUSY : EIO;
}

/// fusermount3 in flight: a setuid helper that mounts for ordinary users.
class Helper {
 public:
  /// @param channel becomes its _FUSE_COMMFD when valid
  Helper(const std::vector<std::string>& arguments, int channel) {
    auto [ours, theirs] = make_pair();
    errors_ = std::move(ours);
    std::vector<char*> argv;
    std::string program = "fusermount3";
    std::vector<std::string> copies = arguments;
    argv.push_back(program.data());
    for (std::string& argument : copies) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::vector<char*> environment;
    std::string channel_variable = "_FUSE_COMMFD=" + std::to_string(channel);
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (!std::string_view(*variable).starts_with("_FUSE_COMMFD=")) environment.push_back(*variable);
    }
    environment.push_back(channel_variable.data());
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDERR_FILENO);
    // A descriptor duplicated onto itself loses close-on-exec.
    if (channel >= 0) posix_spawn_file_actions_adddup2(&actions, channel, channel);
    const int error = posix_spawnp(&process_, "fusermount3", &actions, nullptr, argv.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw SystemError(error, "start fusermount3");
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    reap();
  }

  /// Waits for its end. @throws SystemError with what it said
  void finish() {
    std::string said;
    std::array<char, 512> part{};
    constexpr std::size_t most = 4096;
    for (;;) {
      if (!wait_readable(errors_.get(), helper_patience)) throw SystemError(ETIMEDOUT, "wait for fusermount3");
      const ssize_t length = ::read(errors_.get(), part.data(), part.size());
      if (length < 0 && errno == EINTR) continue;
      if (length <= 0) break;
      if (said.size() < most) said.append(part.data(), static_cast<std::size_t>(length));
    }
    const int status = reap();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    while (!said.empty() && said.back() == '\n') said.pop_back();
    throw SystemError(meaning_of(said), "fusermount3 says: " + said);
  }

 private:
  int reap() {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
    process_ = 0;
    return status;
  }

  Descriptor errors_;
  pid_t process_ = 0;
};

Descriptor receive_descriptor(int channel) {
  if (!wait_readable(channel, helper_patience)) throw SystemError(ETIMEDOUT, "wait for the descriptor of the mount");
  char byte = 0;
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t length = 0;
  do {
    length = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
  } while (length < 0 && errno == EINTR);
  if (length < 0) throw_errno("receive the descriptor of the mount");
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (length == 0 || header == nullptr || header->cmsg_type != SCM_RIGHTS) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return Descriptor(fd);
}

Descriptor mount_through_helper(const std::string& mountpoint, const std::string& source, bool allow_other) {
  if (source.find_first_of(",\\") != std::string::npos) throw SystemError(EINVAL, "name the mount's source");
  auto [ours, theirs] = make_pair();
  std::string options = "fsname=" + source + ",subtype=bridle,default_permissions,nosuid,nodev";
  if (allow_other) options += ",allow_other";
  Helper helper({"-o", options, "--", mountpoint}, theirs.get());
  theirs = Descriptor();  // so that its death ends the wait below
  Descriptor connection = receive_descriptor(ours.get());
  helper.finish();
  if (!connection.valid()) throw SystemError(EPROTO, "receive the descriptor of the mount");
  return connection;
}

}  // namespace

Descriptor open_connection(const std::string& mountpoint, const std::string& source, bool allow_other) {
  struct stat attributes{};
  if (::stat(mountpoint.c_str(), &attributes) != 0) throw_errno("look at " + mountpoint);
  if (!S_ISDIR(attributes.st_mode)) throw SystemError(ENOTDIR, "mount on " + mountpoint);
  if (geteuid() != 0) return mount_through_helper(mountpoint, source, allow_other);
  Descriptor connection(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!connection.valid()) throw_errno("open /dev/fuse");
  std::array<char, 160> options{};
  std::snprintf(options.data(), options.size(), "fd=%d,rootmode=%o,user_id=%u,group_id=%u,default_permissions%s",
                connection.get(), attributes.st_mode & S_IFMT, geteuid(), getegid(), allow_other ? ",allow_other" : "");
  if (::mount(source.c_str(), mountpoint.c_str(), "fuse.bridle", MS_NOSUID | MS_NODEV, options.data()) == 0) {
    return connection;
  }
  if (errno == EPERM) return mount_through_helper(mountpoint, source, allow_other);
  throw_errno("mount on " + mountpoint);
}

void unmount(const std::string& mountpoint, bool lazy) {
  if (umount2(mountpoint.c_str(), UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0) return;
  if (errno != EPERM) throw_errno("unmount " + mountpoint);
  std::vector<std::string> arguments{"-u"};
  if (lazy) arguments.emplace_back("-z");
  arguments.insert(arguments.end(), {"--", mountpoint});
  Helper(arguments, -1).finish();
}

}  // namespace bridle::fuse
