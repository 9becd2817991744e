// Lock order: ProcessReporter::mutex_ is a leaf; nothing else is locked and no JavaScript runs while it is held.
#include "process_reporter.h"

#include <utility>

namespace bridle {

ProcessReporter::ProcessReporter(Napi::Env env) : queue_(Queue::New(env, "bridle:process", 0, 1, this)) {
  queue_.Unref(env);
}

ProcessReporter::~ProcessReporter() { close(); }

std::uint32_t ProcessReporter::add(Napi::Function on_spawn, Napi::Function on_exit) {
  const std::uint32_t id = next_++;
  callbacks_.emplace(id, Callbacks{Napi::Persistent(on_spawn), Napi::Persistent(on_exit)});
  return id;
}

void ProcessReporter::spawned(std::uint32_t id, pid_t pid) { post({Kind::spawned, id, pid, {}}); }

void ProcessReporter::failed(std::uint32_t id, const std::string& reason) { post({Kind::failed, id, 0, reason}); }

void ProcessReporter::exited(std::uint32_t id, int status) { post({Kind::exited, id, status, {}}); }

void ProcessReporter::post(Event event) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  auto owned = std::make_unique<Event>(std::move(event));
  if (queue_.NonBlockingCall(owned.get()) == napi_ok) static_cast<void>(owned.release());
}

void ProcessReporter::close() {
  {
    // After this no thread touches the queue, which the environment frees when its clean-up hooks have run.
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    queue_.Release();
  }
  callbacks_.clear();
}

void ProcessReporter::deliver(Napi::Env env, Napi::Function, ProcessReporter* reporter, Event* pending) {
  const std::unique_ptr<Event> event(pending);
  if (static_cast<napi_env>(env) == nullptr) return;
  try {
    reporter->call(env, *event);
  } catch (const Napi::Error& error) {
    // An exception of the callback is thrown on. That fails, and has nobody to tell, when JavaScript has ended
    // meanwhile.
    napi_throw(env, error.Value());
  }
}

void ProcessReporter::call(Napi::Env env, const Event& event) {
  const auto found = callbacks_.find(event.id);
  if (found == callbacks_.end()) return;
  if (event.kind == Kind::spawned) {
    const Napi::FunctionReference on_spawn = std::move(found->second.on_spawn);
    on_spawn.Call({Napi::Number::New(env, event.value)});
    return;
  }
  const Callbacks callbacks = std::move(found->second);
  callbacks_.erase(found);
  if (event.kind == Kind::failed) {
    callbacks.on_spawn.Call({env.Null(), Napi::String::New(env, event.reason)});
  } else {
    callbacks.on_exit.Call({Napi::Number::New(env, event.value)});
  }
}

}  // namespace bridle
