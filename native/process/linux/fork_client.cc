#include "fork_client.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "../system_error.h"
#include "pidfd.h"

namespace bridle {
namespace {

constexpr int first_free_slot = fork_socket_slot + 1;

struct Pair {
  UniqueFd ours;
  UniqueFd theirs;
};

enum class Direction { to_child, from_child };

Pair make_pipe(Direction direction) {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  if (direction == Direction::to_child) return {std::move(write_end), std::move(read_end)};
  return {std::move(read_end), std::move(write_end)};
}

Pair make_socket(int type) {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds.data()) != 0) throw_errno("socketpair");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

/// A descriptor above the slots, so that placing one never overwrites another.
UniqueFd above_slots(UniqueFd fd) {
  if (fd.get() >= first_free_slot) return fd;
  UniqueFd moved(fcntl(fd.get(), F_DUPFD_CLOEXEC, first_free_slot));
  if (!moved) throw_errno("fcntl F_DUPFD_CLOEXEC");
  return moved;
}

class FileActions {
 public:
  FileActions() { check(posix_spawn_file_actions_init(&actions_)); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  void place(int fd, int slot) { check(posix_spawn_file_actions_adddup2(&actions_, fd, slot)); }
  void close_from(int first) { check(posix_spawn_file_actions_addclosefrom_np(&actions_, first)); }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  static void check(int code) {
    if (code != 0) throw SystemError(code, "posix_spawn_file_actions");
  }
  posix_spawn_file_actions_t actions_{};
};

/// A session of its own, no blocked and no ignored signal.
class Attributes {
 public:
  Attributes() {
    check(posix_spawnattr_init(&attributes_));
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    check(posix_spawnattr_setsigmask(&attributes_, &none));
    check(posix_spawnattr_setsigdefault(&attributes_, &all));
    check(posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  [[nodiscard]] const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  static void check(int code) {
    if (code != 0) throw SystemError(code, "posix_spawnattr");
  }
  posix_spawnattr_t attributes_{};
};

/// @returns the pid of a fork server that executes. Throws SystemError
pid_t execute(const std::string& executable, UniqueFd socket) {
  const UniqueFd null_device = above_slots(UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)));
  const UniqueFd theirs = above_slots(std::move(socket));
  FileActions actions;
  actions.place(null_device.get(), STDIN_FILENO);
  actions.place(null_device.get(), STDOUT_FILENO);
  actions.place(theirs.get(), fork_socket_slot);
  actions.close_from(first_free_slot);
  const Attributes attributes;

  std::string name = "bridle-supervisor";
  std::string protocol = fork_protocol;
  std::string parent = std::to_string(getpid());
  std::string lease = "BRIDLE_LEASE=" + std::string(lease_id_size, '0');
  std::array<char*, 4> arguments{name.data(), protocol.data(), parent.data(), nullptr};
  std::array<char*, 2> environment{lease.data(), nullptr};
  pid_t pid = 0;
  const int code =
      posix_spawn(&pid, executable.c_str(), actions.get(), attributes.get(), arguments.data(), environment.data());
  if (code != 0) throw SystemError(code, "posix_spawn " + executable);
  return pid;
}

int wait_for(int pidfd) {
  siginfo_t info{};
  while (waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED) != 0 && errno == EINTR) {
  }
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

}  // namespace

SupervisorEnds connect(SupervisorLaunch& launch) {
  Pair control = make_socket(SOCK_STREAM);
  Pair input = make_pipe(Direction::to_child);
  Pair output = make_pipe(Direction::from_child);
  Pair errors = make_pipe(Direction::from_child);
  Pair gate = make_socket(SOCK_STREAM);
  launch.ends = {std::move(control.theirs), std::move(input.theirs), std::move(output.theirs), std::move(errors.theirs),
                 std::move(gate.theirs)};
  return {std::move(control.ours), std::move(input.ours), std::move(output.ours), std::move(errors.ours),
          std::move(gate.ours)};
}

ForkClient::ForkClient(const std::string& executable) {
  Pair socket = make_socket(SOCK_SEQPACKET);
  socket_ = std::move(socket.ours);
  pid_ = execute(executable, std::move(socket.theirs));
  pidfd_ = open_pidfd(pid_);
  // It leaves when its socket closes; init takes its exit, or the daemon's does.
  if (!pidfd_) throw_errno("pidfd_open");
}

ForkClient::~ForkClient() { end(); }

int ForkClient::send(const SupervisorLaunch& launch) const {
  ForkRequest request{};
  launch.lease.copy(request.lease.data(), request.lease.size());
  std::array<int, fork_descriptors> fds{};
  std::transform(launch.ends.begin(), launch.ends.end(), fds.begin(), [](const UniqueFd& fd) { return fd.get(); });
  iovec part{&request, sizeof(request)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(fds))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(fds));
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof(fds));
  ssize_t size = 0;
  do {
    size = sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (size < 0 && errno == EINTR);
  return size < 0 ? errno : 0;
}

std::optional<ForkReply> ForkClient::receive(bool& gone) const {
  ForkReply reply;
  ssize_t size = 0;
  do {
    size = recv(socket_.get(), &reply, sizeof(reply), MSG_DONTWAIT | MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  if (size == static_cast<ssize_t>(sizeof(reply))) return reply;
  // Anything else of another size is no fork server's.
  gone = size >= 0 || errno != EAGAIN;
  return std::nullopt;
}

int ForkClient::end() {
  if (!pidfd_) return 0;
  send_signal(pidfd_.get(), SIGKILL);
  const int status = wait_for(pidfd_.get());
  pidfd_.reset();
  return status;
}

}  // namespace bridle
