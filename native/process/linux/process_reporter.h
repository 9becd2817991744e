#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace bridle {

/// Brings what becomes of processes from the spawner's thread to the JavaScript thread of one environment, and to
/// nothing once that environment ends. It never keeps the event loop alive.
class ProcessReporter {
 public:
  explicit ProcessReporter(Napi::Env env);
  ~ProcessReporter();
  ProcessReporter(const ProcessReporter&) = delete;
  ProcessReporter& operator=(const ProcessReporter&) = delete;

  /// JavaScript thread only. `on_spawn` is called with a pid, or with null and what failed; `on_exit` with the status.
  std::uint32_t add(Napi::Function on_spawn, Napi::Function on_exit);
  /// Any thread.
  void spawned(std::uint32_t id, pid_t pid);
  /// Any thread: nothing else will be reported.
  void failed(std::uint32_t id, const std::string& reason);
  /// Any thread.
  void exited(std::uint32_t id, int status);
  /// JavaScript thread only, while the environment ends.
  void close();

 private:
  enum class Kind : std::uint8_t { spawned, failed, exited };
  struct Event {
    Kind kind{};
    std::uint32_t id = 0;
    int value = 0;
    std::string reason;
  };
  struct Callbacks {
    Napi::FunctionReference on_spawn;
    Napi::FunctionReference on_exit;
  };
  static void deliver(Napi::Env env, Napi::Function unused, ProcessReporter* reporter, Event* event);
  void post(Event event);
  void call(Napi::Env env, const Event& event);
  using Queue = Napi::TypedThreadSafeFunction<ProcessReporter, Event, deliver>;

  std::unordered_map<std::uint32_t, Callbacks> callbacks_;  // JavaScript thread only
  std::uint32_t next_ = 1;                                  // JavaScript thread only
  std::mutex mutex_;
  bool closed_ = false;  // guarded by mutex_
  Queue queue_;          // guarded by mutex_
};

}  // namespace bridle
