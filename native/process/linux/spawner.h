#pragma once

#include <sys/types.h>

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "unique_fd.h"

namespace bridle {

/// Our ends of a supervisor: the control channel and three pipes.
struct SupervisorEnds {
  UniqueFd control;
  UniqueFd stdin_end;
  UniqueFd stdout_end;
  UniqueFd stderr_end;
};

/// What to start, with the supervisor's ends of everything.
struct SupervisorLaunch {
  std::string executable;
  /// Stands in the supervisor's environment as BRIDLE_LEASE.
  std::string lease;
  UniqueFd control;
  std::array<UniqueFd, 3> streams;
};

/// Connects a launch with new pipes. @returns our ends. Throws SystemError
SupervisorEnds connect(SupervisorLaunch& launch);

/// Hears of one supervisor, on the spawner's thread: either failed, or spawned and later exited.
class SupervisorListener {
 public:
  SupervisorListener() = default;
  virtual ~SupervisorListener() = default;
  SupervisorListener(const SupervisorListener&) = delete;
  SupervisorListener& operator=(const SupervisorListener&) = delete;
  virtual void spawned(pid_t pid) = 0;
  virtual void failed(const std::string& reason) = 0;
  /// Exit code or 128 + signal.
  virtual void exited(int status) = 0;
};

/// The one thread that starts supervisors and waits for them. A parent-death signal belongs to the thread that forked,
/// so this thread lives as long as any environment of the process uses it, whichever worker asked for a process.
class Spawner {
 public:
  /// The process's spawner: made for the first caller, ended with the last reference.
  static std::shared_ptr<Spawner> acquire();

  Spawner();
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  /// Returns at once; the listener hears how it went.
  void spawn(SupervisorLaunch launch, std::unique_ptr<SupervisorListener> listener);

 private:
  struct Command {
    SupervisorLaunch launch;
    std::unique_ptr<SupervisorListener> listener;
  };
  struct Child {
    pid_t pid = 0;
    UniqueFd pidfd;
    std::unique_ptr<SupervisorListener> listener;
  };

  void run();
  bool run_commands();
  void start(Command command);
  void reap(int pidfd);

  UniqueFd wake_;
  UniqueFd epoll_;
  std::mutex mutex_;
  std::deque<Command> commands_;             // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::unordered_map<int, Child> children_;  // by pidfd; only the thread touches it
  std::thread thread_;
};

}  // namespace bridle
