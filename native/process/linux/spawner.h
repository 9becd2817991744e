#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "unique_fd.h"

namespace bridle {

/// Our ends of a started supervisor.
struct SupervisorProcess {
  pid_t pid = 0;
  UniqueFd control;
  UniqueFd stdin_end;
  UniqueFd stdout_end;
  UniqueFd stderr_end;
};

/// The one thread that starts supervisors and waits for them. A parent-death signal belongs to the thread that forked,
/// so this thread lives as long as any environment of the process uses it, whichever worker asked for a process.
class Spawner {
 public:
  /// Exit code or 128 + signal; called once, on the spawner's thread.
  using ExitHandler = std::function<void(int status)>;

  /// The process's spawner: made for the first caller, ended with the last reference.
  static std::shared_ptr<Spawner> acquire();

  Spawner();
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  /// Blocks until the supervisor executes. Throws SystemError.
  SupervisorProcess spawn(const std::string& executable, ExitHandler on_exit);

 private:
  struct Command {
    std::string executable;
    ExitHandler on_exit;
    std::promise<SupervisorProcess> result;
  };
  struct Child {
    pid_t pid = 0;
    UniqueFd pidfd;
    ExitHandler on_exit;
  };

  void run();
  bool run_commands();
  SupervisorProcess start(const std::string& executable, ExitHandler on_exit);
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
