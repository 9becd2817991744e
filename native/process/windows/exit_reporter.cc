// Lock order: ExitReporter::mutex_ is a leaf; nothing else is locked and no JavaScript runs while it is held.
#include "exit_reporter.h"

#include <utility>

namespace bridle {

ExitReporter::ExitReporter(Napi::Env env) : queue_(Queue::New(env, "bridle:exit", 0, 1, this)) { queue_.Unref(env); }

ExitReporter::~ExitReporter() { close(); }

std::uint32_t ExitReporter::add(Napi::Function on_exit) {
  const std::uint32_t id = next_++;
  if (callbacks_.empty()) queue_.Ref(on_exit.Env());
  callbacks_.emplace(id, Napi::Persistent(on_exit));
  return id;
}

void ExitReporter::forget(Napi::Env env, std::uint32_t id) { take(env, id); }

/// Empty when it was taken before.
Napi::FunctionReference ExitReporter::take(Napi::Env env, std::uint32_t id) {
  const auto found = callbacks_.find(id);
  if (found == callbacks_.end()) return {};
  Napi::FunctionReference on_exit = std::move(found->second);
  callbacks_.erase(found);
  if (callbacks_.empty()) queue_.Unref(env);
  return on_exit;
}

void ExitReporter::exited(std::uint32_t id, std::uint32_t code) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  auto exit = std::make_unique<Exit>(Exit{id, code});
  if (queue_.NonBlockingCall(exit.get()) == napi_ok) static_cast<void>(exit.release());
}

void ExitReporter::close() {
  {
    // The environment frees the queue when its clean-up hooks have run: nobody may touch it after this.
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    queue_.Release();
  }
  callbacks_.clear();
}

void ExitReporter::deliver(Napi::Env env, Napi::Function, ExitReporter* reporter, Exit* pending) {
  const std::unique_ptr<Exit> exit(pending);
  if (static_cast<napi_env>(env) == nullptr) return;
  const Napi::FunctionReference on_exit = reporter->take(env, exit->id);
  if (on_exit.IsEmpty()) return;
  try {
    on_exit.Call({Napi::Number::New(env, exit->code)});
  } catch (const Napi::Error& error) {
    // Fails, and has nobody to tell, when JavaScript has ended meanwhile.
    napi_throw(env, error.Value());
  }
}

}  // namespace bridle
