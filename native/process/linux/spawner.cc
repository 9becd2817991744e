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
#include <exception>
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

SupervisorProcess Spawner::spawn(const std::string& executable, ExitHandler on_exit) {
  std::future<SupervisorProcess> result;
  {
    const std::lock_guard lock(mutex_);
    Command& command = commands_.emplace_back(Command{executable, std::move(on_exit), {}});
    result = command.result.get_future();
  }
  eventfd_write(wake_.get(), 1);
  return result.get();
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
    try {
      command.result.set_value(start(command.executable, std::move(command.on_exit)));
    } catch (...) {
      command.result.set_exception(std::current_exception());
    }
  }
}

SupervisorProcess Spawner::start(const std::string& executable, ExitHandler on_exit) {
  const UniqueFd null_device = above_slots(UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)));
  Ends control = make_channel();
  Ends input = make_pipe(Direction::to_child);
  Ends output = make_pipe(Direction::from_child);
  Ends errors = make_pipe(Direction::from_child);

  FileActions actions;
  actions.place(null_device.get(), STDIN_FILENO);
  actions.place(null_device.get(), STDOUT_FILENO);
  actions.place(control.theirs.get(), control_slot);
  actions.place(input.theirs.get(), stdin_slot);
  actions.place(output.theirs.get(), stdout_slot);
  actions.place(errors.theirs.get(), stderr_slot);
  actions.close_from(first_free_slot);
  const Attributes attributes;

  std::string name = "bridle-supervisor";
  std::string parent = std::to_string(getpid());
  std::array<char*, 3> arguments{name.data(), parent.data(), nullptr};
  std::array<char*, 1> environment{nullptr};
  pid_t pid = 0;
  const int code =
      posix_spawn(&pid, executable.c_str(), actions.get(), attributes.get(), arguments.data(), environment.data());
  if (code != 0) throw SystemError(code, "posix_spawn " + executable);

  Child child{pid, open_pidfd(pid), std::move(on_exit)};
  const int pidfd = child.pidfd.get();
  try {
    if (!child.pidfd) throw_errno("pidfd_open");
    watch(epoll_.get(), pidfd);
  } catch (...) {
    // It has nothing to supervise yet and leaves when its control channel closes; wait, so that no zombie stays.
    control.ours.reset();
    waitpid(pid, nullptr, 0);
    throw;
  }
  children_.emplace(pidfd, std::move(child));
  return {pid, std::move(control.ours), std::move(input.ours), std::move(output.ours), std::move(errors.ours)};
}

void Spawner::reap(int pidfd) {
  const auto found = children_.find(pidfd);
  if (found == children_.end()) return;
  siginfo_t info{};
  if (waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, pidfd, nullptr);
  const Child child = std::move(found->second);
  children_.erase(found);
  child.on_exit(info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status);
}

}  // namespace bridle
