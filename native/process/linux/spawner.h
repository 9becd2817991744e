#pragma once

#include <sys/types.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "fork_client.h"
#include "unique_fd.h"

namespace bridle {

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

/// The one thread that starts supervisors, through a fork server, and waits for them. A parent-death signal belongs to
/// the thread that forked, so this thread lives as long as any environment of the process uses it, whichever worker
/// asked for a process.
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
  /// The fork server of one program, from the first use on; a new one when it ended.
  struct Server {
    std::unique_ptr<ForkClient> client;
    std::deque<Command> unsent;
    std::deque<std::unique_ptr<SupervisorListener>> unanswered;
  };
  struct Child {
    pid_t pid = 0;
    UniqueFd pidfd;
    /// Null for a supervisor whose server ended before it could tell.
    std::unique_ptr<SupervisorListener> listener;
  };
  using Listeners = std::vector<std::unique_ptr<SupervisorListener>>;

  void run();
  bool stopping();
  void handle(int fd);
  void start_servers();
  void start_server(const std::string& executable);
  static void send_waiting(Server& server);
  void take_replies(const std::string& executable, int socket);
  void retire(const std::string& executable, int socket);
  static Listeners take_waiting(Server& server);
  void take_in(pid_t pid, std::unique_ptr<SupervisorListener> listener);
  void adopt_unknown();
  bool is_server(pid_t pid);
  void reap(int pidfd);

  UniqueFd wake_;
  UniqueFd epoll_;
  std::mutex mutex_;
  std::unordered_map<std::string, Server> servers_;  // by executable; guarded by mutex_
  bool stopping_ = false;                            // guarded by mutex_
  std::unordered_map<int, std::string> sockets_;     // executables by socket of the client; only the thread touches it
  std::unordered_map<int, Child> children_;          // by pidfd; only the thread touches it
  std::thread thread_;
};

}  // namespace bridle
