#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace bridle {

/// Brings the exit codes of children from the system's threads to the JavaScript thread of one environment, and to
/// nothing once that environment ends. It keeps the event loop alive while somebody waits for an exit code.
class ExitReporter {
 public:
  explicit ExitReporter(Napi::Env env);
  ~ExitReporter();
  ExitReporter(const ExitReporter&) = delete;
  ExitReporter& operator=(const ExitReporter&) = delete;

  /// JavaScript thread only.
  std::uint32_t add(Napi::Function on_exit);
  /// JavaScript thread only: nothing will be reported, unless it was already.
  void forget(Napi::Env env, std::uint32_t id);
  /// Any thread.
  void exited(std::uint32_t id, std::uint32_t code);
  /// JavaScript thread only, while the environment ends.
  void close();

 private:
  struct Exit {
    std::uint32_t id = 0;
    std::uint32_t code = 0;
  };
  Napi::FunctionReference take(Napi::Env env, std::uint32_t id);
  static void deliver(Napi::Env env, Napi::Function unused, ExitReporter* reporter, Exit* exit);
  using Queue = Napi::TypedThreadSafeFunction<ExitReporter, Exit, deliver>;

  std::unordered_map<std::uint32_t, Napi::FunctionReference> callbacks_;  // JavaScript thread only
  std::uint32_t next_ = 1;                                                // JavaScript thread only
  std::mutex mutex_;
  bool closed_ = false;  // guarded by mutex_
  Queue queue_;          // guarded by mutex_; Ref and Unref belong to the JavaScript thread
};

}  // namespace bridle
