#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace bridle {

/// Brings exits from the spawner's thread to the JavaScript thread of one environment, and to nothing once that
/// environment ends. It never keeps the event loop alive.
class ExitReporter {
 public:
  explicit ExitReporter(Napi::Env env);
  ~ExitReporter();
  ExitReporter(const ExitReporter&) = delete;
  ExitReporter& operator=(const ExitReporter&) = delete;

  /// JavaScript thread only.
  std::uint32_t add(Napi::Function callback);
  /// JavaScript thread only: the process was never started.
  void drop(std::uint32_t id);
  /// Any thread.
  void report(std::uint32_t id, int status);
  /// JavaScript thread only, while the environment ends.
  void close();

 private:
  struct Exit {
    std::uint32_t id = 0;
    int status = 0;
  };
  static void deliver(Napi::Env env, Napi::Function unused, ExitReporter* reporter, Exit* exit);
  using Queue = Napi::TypedThreadSafeFunction<ExitReporter, Exit, deliver>;

  std::unordered_map<std::uint32_t, Napi::FunctionReference> callbacks_;  // JavaScript thread only
  std::uint32_t next_ = 1;                                                // JavaScript thread only
  std::mutex mutex_;
  bool closed_ = false;  // guarded by mutex_
  Queue queue_;          // guarded by mutex_
};

}  // namespace bridle
