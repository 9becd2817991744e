// Lock order: the registry's mutex (in acquire), then Spawner::mutex_. No listener is called with either held.
#include "spawner.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "../system_error.h"
#include "pidfd.h"
#include "proc.h"

namespace bridle {
namespace {

void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) throw_errno("epoll_ctl");
}

/// Only what the kernel says is ours is believed to be.
bool is_child(int pidfd) {
  siginfo_t info{};
  return waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

std::shared_ptr<Spawner> Spawner::acquire() {
  static std::mutex mutex;
  static std::weak_ptr<Spawner> current;
  const std::lock_guard lock(mutex);
  auto spawner = current.lock();
  if (!spawner) {
    spawner = std::make_shared<Spawner>();
    current = spawner;
  }
  return spawner;
}

Spawner::Spawner() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!wake_ || !epoll_) throw_errno("eventfd, epoll_create1");
  watch(epoll_.get(), wake_.get());
  thread_ = std::thread([this] { run(); });
}

Spawner::~Spawner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Spawner::spawn(SupervisorLaunch launch, std::unique_ptr<SupervisorListener> listener) {
  const std::lock_guard lock(mutex_);
  Server& server = servers_[launch.executable];
  server.unsent.push_back(Command{std::move(launch), std::move(listener)});
  // Only the thread may start a server; one that runs is asked from here.
  if (server.client) send_waiting(server);
  if (!server.unsent.empty()) eventfd_write(wake_.get(), 1);
}

void Spawner::run() {
  block_all_signals();
  pthread_setname_np(pthread_self(), "bridle-spawner");
  std::array<epoll_event, 64> events{};
  while (!stopping()) {
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int at = 0; at < count; ++at) handle(events.at(static_cast<std::size_t>(at)).data.fd);
  }
}

bool Spawner::stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void Spawner::handle(int fd) {
  if (fd == wake_.get()) {
    eventfd_t ignored = 0;
    eventfd_read(fd, &ignored);
    start_servers();
  } else if (const auto found = sockets_.find(fd); found != sockets_.end()) {
    take_replies(std::string(found->second), fd);
  } else {
    reap(fd);
  }
}

void Spawner::start_servers() {
  std::vector<std::string> wanted;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [executable, server] : servers_) {
      if (!server.client && !server.unsent.empty()) wanted.push_back(executable);
    }
  }
  for (const std::string& executable : wanted) start_server(executable);
}

/// Without the lock: an execution may take long, and nobody else is to wait for it.
void Spawner::start_server(const std::string& executable) {
  try {
    auto client = std::make_unique<ForkClient>(executable);
    watch(epoll_.get(), client->fd());
    sockets_.emplace(client->fd(), executable);
    const std::lock_guard lock(mutex_);
    Server& server = servers_[executable];
    server.client = std::move(client);
    send_waiting(server);
  } catch (const SystemError& error) {
    std::unique_lock lock(mutex_);
    const Listeners waiting = take_waiting(servers_[executable]);
    servers_.erase(executable);
    lock.unlock();
    for (const auto& listener : waiting) listener->failed(error.what());
  }
}

/// Sends what the socket takes; the rest goes when a reply has made room. A server that is gone is noticed by the
/// thread, which then fails what waits.
void Spawner::send_waiting(Server& server) {
  while (!server.unsent.empty()) {
    if (server.client->send(server.unsent.front().launch) != 0) return;
    server.unanswered.push_back(std::move(server.unsent.front().listener));
    server.unsent.pop_front();
  }
}

void Spawner::take_replies(const std::string& executable, int socket) {
  for (;;) {
    std::optional<ForkReply> reply;
    std::unique_ptr<SupervisorListener> listener;
    bool gone = false;
    {
      const std::lock_guard lock(mutex_);
      Server& server = servers_[executable];
      reply = server.client->receive(gone);
      if (reply && !server.unanswered.empty()) {
        listener = std::move(server.unanswered.front());
        server.unanswered.pop_front();
        send_waiting(server);
      }
    }
    if (gone) retire(executable, socket);
    if (!reply || !listener) return;
    if (reply->pid < 0) {
      listener->failed("fork: " + errno_name(-reply->pid));
    } else {
      take_in(reply->pid, std::move(listener));
    }
  }
}

/// The server ended. What it had not answered failed; the next launch starts another one.
void Spawner::retire(const std::string& executable, int socket) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
  sockets_.erase(socket);
  std::unique_ptr<ForkClient> client;
  Listeners waiting;
  {
    const std::lock_guard lock(mutex_);
    Server& server = servers_[executable];
    client = std::move(server.client);
    waiting = take_waiting(server);
    servers_.erase(executable);
  }
  const int status = client->end();
  adopt_unknown();
  for (const auto& listener : waiting) listener->failed("it ended with status " + std::to_string(status));
}

Spawner::Listeners Spawner::take_waiting(Server& server) {
  Listeners waiting;
  for (auto& listener : server.unanswered) waiting.push_back(std::move(listener));
  for (auto& command : server.unsent) waiting.push_back(std::move(command.listener));
  return waiting;
}

void Spawner::take_in(pid_t pid, std::unique_ptr<SupervisorListener> listener) {
  Child child{pid, open_pidfd(pid), std::move(listener)};
  const int pidfd = child.pidfd.get();
  try {
    if (!child.pidfd) throw_errno("pidfd_open");
    if (!is_child(pidfd)) throw SystemError(ECHILD, "fork");
    watch(epoll_.get(), pidfd);
  } catch (const SystemError& error) {
    // Nobody can await it. It supervises nothing yet and leaves when its control channel closes, which the caller does
    // when it hears of the failure; init takes its exit, or the daemon's does.
    if (child.listener) child.listener->failed(error.what());
    return;
  }
  if (child.listener) child.listener->spawned(pid);
  children_.emplace(pidfd, std::move(child));
}

/// A server may have forked without living to tell. Everything that this thread is the parent of is a supervisor.
void Spawner::adopt_unknown() {
  for (const pid_t pid : children_of_thread()) {
    const auto knows = [pid](const auto& entry) { return entry.second.pid == pid; };
    const bool known = std::any_of(children_.begin(), children_.end(), knows);
    if (!known && !is_server(pid)) take_in(pid, nullptr);
  }
}

bool Spawner::is_server(pid_t pid) {
  const std::lock_guard lock(mutex_);
  return std::any_of(servers_.begin(), servers_.end(),
                     [pid](const auto& entry) { return entry.second.client && entry.second.client->pid() == pid; });
}

void Spawner::reap(int pidfd) {
  const auto found = children_.find(pidfd);
  if (found == children_.end()) return;
  siginfo_t info{};
  if (waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, pidfd, nullptr);
  const Child child = std::move(found->second);
  children_.erase(found);
  if (child.listener) child.listener->exited(info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status);
}

}  // namespace bridle
