#include "fork_server.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "../process/system_error.h"

namespace bridle::supervisor {
namespace {

constexpr int not_started = 1;

/// Like fork, but the new process is a child of our parent, whose death signal it gets.
pid_t fork_sibling() {
  clone_args arguments{};
  arguments.flags = CLONE_PARENT;
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

/// Writes the lease over the place that the environment keeps for it, where /proc/PID/environ shows it.
void name_lease(const ForkRequest& request) {
  char* place = std::getenv("BRIDLE_LEASE");
  if (place != nullptr && std::strlen(place) == request.lease.size()) {
    std::copy(request.lease.begin(), request.lease.end(), place);
  }
}

/// All signals are blocked, so those that matter are read.
UniqueFd open_signals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&watched, number);
  UniqueFd fd(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) throw_errno("signalfd");
  return fd;
}

}  // namespace

ForkServer::ForkServer(int socket, pid_t daemon_pid, UniqueFd daemon)
    : socket_(socket), daemon_pid_(daemon_pid), daemon_(std::move(daemon)) {}

int ForkServer::run() {
  while (auto request = receive()) {
    const pid_t pid = fork_sibling();
    if (pid == 0) return supervise(std::move(*request));
    reply(pid < 0 ? -errno : pid);
  }
  return 0;
}

std::optional<ForkServer::Request> ForkServer::receive() {
  Request request;
  iovec part{&request.body, sizeof(request.body)};
  std::array<int, fork_descriptors> fds{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(fds))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t size = 0;
  do {
    size = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (size != static_cast<ssize_t>(sizeof(request.body)) || header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(fds))) {
    return std::nullopt;
  }
  std::memcpy(fds.data(), CMSG_DATA(header), sizeof(fds));
  request.control = UniqueFd(fds[0]);
  for (std::size_t stream = 0; stream < request.child.streams.size(); ++stream) {
    request.child.streams.at(stream) = UniqueFd(fds.at(stream + 1));
  }
  request.child.gate = UniqueFd(fds[4]);
  return request;
}

void ForkServer::reply(pid_t pid) const {
  const ForkReply reply{pid};
  // A daemon that is gone is noticed by the next look at the socket.
  static_cast<void>(send(socket_.get(), &reply, sizeof(reply), MSG_NOSIGNAL));
}

int ForkServer::supervise(Request request) {
  socket_.reset();
  setsid();
  name_lease(request.body);
  const UniqueFd signals = open_signals();
  if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) throw_errno("prctl PR_SET_PDEATHSIG");
  // The daemon may have died before the death signal was set; nothing has been started yet.
  if (getppid() != daemon_pid_) return not_started;
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) throw_errno("prctl PR_SET_CHILD_SUBREAPER");
  Supervisor supervisor(request.control.get(), std::move(request.child), {signals.get(), daemon_.get()});
  return supervisor.run();
}

}  // namespace bridle::supervisor
