// Lock order: the registry's mutex (in acquire), then Spawner::mutex_. No handler runs with either held.
#include "spawner.h"

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <utility>

#include "../system_error.h"
#include "pidfd.h"

namespace bridle {
namespace {

// Where the supervisor finds its descriptors; native/supervisor/main.cc reads the same numbers.
constexpr int control_slot = 3;
constexpr int stdin_slot = 4;
constexpr int stdout_slot = 5;
constexpr int stderr_slot = 6;
constexpr int first_free_slot = 7;

struct Ends {
  UniqueFd ours;
  UniqueFd theirs;
};

/// A descriptor above the slots, so that placing one never overwrites another.
UniqueFd above_slots(UniqueFd fd) {
  if (fd.get() >= first_free_slot) return fd;
  UniqueFd moved(fcntl(fd.get(), F_DUPFD_CLOEXEC, first_free_slot));
  if (!moved) throw_errno("fcntl F_DUPFD_CLOEXEC");
  return moved;
}

enum class Direction { to_child, from_child };

Ends make_pipe(Direction direction) {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  if (direction == Direction::to_child) return {std::move(write_end), above_slots(std::move(read_end))};
  return {std::move(read_end), above_slots(std::move(write_end))};
}

Ends make_channel() {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) throw_errno("socketpair");
  UniqueFd ours(fds[0]);
  return {std::move(ours), above_slots(UniqueFd(fds[1]))};
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

/// @returns the pid of a supervisor that executes. Throws SystemError
pid_t execute(const SupervisorLaunch& launch) {
  const UniqueFd null_device = above_slots(UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)));
  FileActions actions;
  actions.place(null_device.get(), STDIN_FILENO);
  actions.place(null_device.get(), STDOUT_FILENO);
  actions.place(launch.control.get(), control_slot);
  actions.place(launch.streams[0].get(), stdin_slot);
  actions.place(launch.streams[1].get(), stdout_slot);
  actions.place(launch.streams[2].get(), stderr_slot);
  actions.close_from(first_free_slot);
  const Attributes attributes;

  std::string name = "bridle-supervisor";
  std::string parent = std::to_string(getpid());
  std::string lease = "BRIDLE_LEASE=" + launch.lease;
  std::array<char*, 3> arguments{name.data(), parent.data(), nullptr};
  std::array<char*, 2> environment{lease.data(), nullptr};
  pid_t pid = 0;
  const int code = posix_spawn(&pid, launch.executable.c_str(), actions.get(), attributes.get(), arguments.data(),
                               environment.data());
  if (code != 0) throw SystemError(code, "posix_spawn " + launch.executable);
  return pid;
}

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

}  // namespace

SupervisorEnds connect(SupervisorLaunch& launch) {
  SupervisorEnds ours;
  Ends control = make_channel();
  ours.control = std::move(control.ours);
  launch.control = std::move(control.theirs);
  Ends input = make_pipe(Direction::to_child);
  Ends output = make_pipe(Direction::from_child);
  Ends errors = make_pipe(Direction::from_child);
  launch.streams = {std::move(input.theirs), std::move(output.theirs), std::move(errors.theirs)};
  ours.stdin_end = std::move(input.ours);
  ours.stdout_end = std::move(output.ours);
  ours.stderr_end = std::move(errors.ours);
  return ours;
}

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
  {
    const std::lock_guard lock(mutex_);
    commands_.emplace_back(Command{std::move(launch), std::move(listener)});
  }
  eventfd_write(wake_.get(), 1);
}

void Spawner::run() {
  block_all_signals();
  pthread_setname_np(pthread_self(), "bridle-spawner");
  std::array<epoll_event, 64> events{};
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int at = 0; at < count; ++at) {
      const int fd = events.at(static_cast<std::size_t>(at)).data.fd;
      if (fd != wake_.get()) {
        reap(fd);
        continue;
      }
      eventfd_t ignored = 0;
      eventfd_read(wake_.get(), &ignored);
      if (!run_commands()) return;
    }
  }
}

bool Spawner::run_commands() {
  for (;;) {
    Command command;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return false;
      if (commands_.empty()) return true;
      command = std::move(commands_.front());
      commands_.pop_front();
    }
    start(std::move(command));
  }
}

void Spawner::start(Command command) {
  try {
    const pid_t pid = execute(command.launch);
    Child child{pid, open_pidfd(pid), std::move(command.listener)};
    const int pidfd = child.pidfd.get();
    try {
      if (!child.pidfd) throw_errno("pidfd_open");
      watch(epoll_.get(), pidfd);
    } catch (...) {
      // Nobody can await it. It supervises nothing yet and leaves when its control channel closes, which the caller
      // does when it hears of the failure; init takes its exit, or the daemon's does.
      command.listener = std::move(child.listener);
      throw;
    }
    child.listener->spawned(pid);
    children_.emplace(pidfd, std::move(child));
  } catch (const SystemError& error) {
    command.listener->failed(error.what());
  }
}

void Spawner::reap(int pidfd) {
  const auto found = children_.find(pidfd);
  if (found == children_.end()) return;
  siginfo_t info{};
  if (waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, pidfd, nullptr);
  const Child child = std::move(found->second);
  children_.erase(found);
  child.listener->exited(info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status);
}

}  // namespace bridle
