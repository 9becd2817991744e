// Lock order: ExitReporter::mutex_ is a leaf; nothing else is locked and no JavaScript runs while it is held.
#include "exit_reporter.h"

#include <utility>

namespace bridle {

ExitReporter::ExitReporter(Napi::Env env) : queue_(Queue::New(env, "bridle:exit", 0, 1, this)) { queue_.Unref(env); }

ExitReporter::~ExitReporter() { close(); }

std::uint32_t ExitReporter::add(Napi::Function callback) {
  const std::uint32_t id = next_++;
  callbacks_.emplace(id, Napi::Persistent(callback));
  return id;
}

void ExitReporter::drop(std::uint32_t id) { callbacks_.erase(id); }

void ExitReporter::report(std::uint32_t id, int status) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  auto exit = std::make_unique<Exit>(Exit{id, status});
  if (queue_.NonBlockingCall(exit.get()) == napi_ok) static_cast<void>(exit.release());
}

void ExitReporter::close() {
  {
    // After this no thread touches the queue, which the environment frees when its clean-up hooks have run.
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    queue_.Release();
  }
  callbacks_.clear();
}

void ExitReporter::deliver(Napi::Env env, Napi::Function, ExitReporter* reporter, Exit* pending) {
  const std::unique_ptr<Exit> exit(pending);
  if (static_cast<napi_env>(env) == nullptr) return;
  const auto found = reporter->callbacks_.find(exit->id);
  if (found == reporter->callbacks_.end()) return;
  const Napi::FunctionReference callback = std::move(found->second);
  reporter->callbacks_.erase(found);
  try {
    callback.Call({Napi::Number::New(env, exit->status)});
  } catch (const Napi::Error& error) {
    error.ThrowAsJavaScriptException();
  }
}

}  // namespace bridle
