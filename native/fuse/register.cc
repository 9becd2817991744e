#include "register.h"

#include <cerrno>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "connection.h"
#include "convert.h"
#include "mountinfo.h"
#include "native/process/system_error.h"
#include "session.h"

namespace bridle::fuse {
namespace {

template <typename Function>
auto guarded(Napi::Env env, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const SystemError& failure) {
    const Napi::Error error = Napi::Error::New(env, failure.what());
    error.Set("code", errno_name(failure.code()));
    error.Set("step", failure.step());
    throw error;
  } catch (const Napi::Error&) {
    throw;
  } catch (const std::exception& failure) {
    throw Napi::Error::New(env, failure.what());
  }
}

/// One served mount as JavaScript holds it. Only the JavaScript thread touches it, but for `session` and `wake`.
class Bridge : public std::enable_shared_from_this<Bridge> {
 public:
  static void deliver(Napi::Env env, Napi::Function /*unused*/, std::shared_ptr<Bridge>* bridge, void* /*data*/) {
    if (static_cast<napi_env>(env) != nullptr) (*bridge)->run_callbacks(env);
  }
  using Wake = Napi::TypedThreadSafeFunction<std::shared_ptr<Bridge>, void, deliver>;

  explicit Bridge(const Napi::Object& options)
      : on_request_(Napi::Persistent(convert::to_function(options.Get("onRequest"), "onRequest"))),
        on_abort_(Napi::Persistent(convert::to_function(options.Get("onAbort"), "onAbort"))),
        on_end_(Napi::Persistent(convert::to_function(options.Get("onEnd"), "onEnd"))) {}

  void start(Napi::Env env, Descriptor connection, const Settings& settings, NodeSpec root) {
    wake_ = Wake::New(env, "bridle.fuse", 0, 1, new std::shared_ptr<Bridge>(shared_from_this()),
                      [](Napi::Env, void*, std::shared_ptr<Bridge>* held) { delete held; });
    try {
      session_ = std::make_shared<Session>(std::move(connection), settings, std::move(root),
                                           [wake = wake_] { wake.NonBlockingCall(); });
    } catch (...) {
      release();
      throw;
    }
    // Runs before the end of an environment (process exit, worker termination) takes the function above away.
    hook_ = env.AddCleanupHook(&stop_at_end, this);
  }

  /// Null after the mount has stopped.
  [[nodiscard]] const std::shared_ptr<Session>& session() const { return session_; }

  /// After the session has stopped: nothing of it keeps the process alive any longer.
  void finish(Napi::Env env) {
    if (released_) return;
    hook_.Remove(env);
    release();
    last_statistics_ = session_->statistics();
    session_.reset();
  }

  [[nodiscard]] Statistics statistics() const { return session_ ? session_->statistics() : last_statistics_; }

 private:
  static void stop_at_end(Bridge* bridge) { bridge->session_->stop(); }

  void release() {
    released_ = true;
    on_request_.Reset();
    on_abort_.Reset();
    on_end_.Reset();
    wake_.Release();
  }

  void run_callbacks(Napi::Env env) {
    const std::shared_ptr<Session> session = session_;
    if (!session) return;
    for (const Event& event : session->take_events()) {
      if (released_) return;
      const Napi::HandleScope scope(env);
      try {
        call(env, event);
      } catch (const Napi::Error& thrown) {
        session->answer(event.token, EIO);
        napi_fatal_exception(env, thrown.Value());  // as any exception that nobody caught
      }
    }
  }

  void call(Napi::Env env, const Event& event) {
    switch (event.what) {
      case Event::What::Request:
        on_request_.Call({convert::from_question(env, event.question)});
        break;
      case Event::What::Abort:
        on_abort_.Call({Napi::Number::New(env, static_cast<double>(event.token))});
        break;
      case Event::What::End:
        on_end_.Call(std::initializer_list<napi_value>{});
        break;
    }
  }

  Napi::FunctionReference on_request_;
  Napi::FunctionReference on_abort_;
  Napi::FunctionReference on_end_;
  Wake wake_;
  Napi::Env::CleanupHook<void (*)(Bridge*), Bridge> hook_;
  bool released_ = false;
  std::shared_ptr<Session> session_;
  Statistics last_statistics_{};
};

class StopWork : public Napi::AsyncWorker {
 public:
  StopWork(Napi::Env env, std::shared_ptr<Bridge> bridge)
      : AsyncWorker(env, "bridle.fuse.stop"),
        deferred_(env),
        bridge_(std::move(bridge)),
        session_(bridge_->session()) {}

  [[nodiscard]] Napi::Promise promise() const { return deferred_.Promise(); }

 protected:
  void Execute() override {
    if (session_) session_->stop();
  }
  void OnOK() override {
    bridge_->finish(Env());
    deferred_.Resolve(Env().Undefined());
  }
  void OnError(const Napi::Error& error) override {
    bridge_->finish(Env());
    deferred_.Reject(error.Value());
  }

 private:
  Napi::Promise::Deferred deferred_;
  std::shared_ptr<Bridge> bridge_;
  std::shared_ptr<Session> session_;
};

Napi::Object make_session_object(Napi::Env env, const std::shared_ptr<Bridge>& bridge) {
  Napi::Object object = Napi::Object::New(env);
  const auto method = [&](const char* name, auto body) {
    object.Set(name, Napi::Function::New(
                         env,
                         [bridge, body](const Napi::CallbackInfo& info) -> Napi::Value {
                           return guarded(info.Env(), [&] { return body(*bridge, info); });
                         },
                         name));
  };
  method("publish", [](Bridge& held, const Napi::CallbackInfo& info) -> Napi::Value {
    std::vector<Change> changes = convert::to_changes(info[0]);
    if (held.session()) held.session()->publish(std::move(changes));
    return info.Env().Undefined();
  });
  method("answer", [](Bridge& held, const Napi::CallbackInfo& info) -> Napi::Value {
    constexpr std::uint64_t most_errno = 4095;
    const auto token = convert::to_whole(info[0], inode_mask, "token");
    const auto error = static_cast<int>(convert::to_whole(info[1], most_errno, "errno"));
    return Napi::Boolean::New(info.Env(), held.session() && held.session()->answer(token, error));
  });
  method("stats", [](Bridge& held, const Napi::CallbackInfo& info) -> Napi::Value {
    return convert::from_statistics(info.Env(), held.statistics());
  });
  method("stop", [](Bridge& held, const Napi::CallbackInfo& info) -> Napi::Value {
    auto* work = new StopWork(info.Env(), held.shared_from_this());  // deletes itself when done
    const Napi::Promise promise = work->promise();
    work->Queue();
    return promise;
  });
  return object;
}

Napi::Value serve(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    if (!info[0].IsObject()) throw Napi::TypeError::New(info.Env(), "options is not an object");
    const auto options = info[0].As<Napi::Object>();
    constexpr std::uint64_t most_descriptor = 0x7fffffff;
    constexpr std::uint64_t most_milliseconds = std::uint64_t{1} << 40;
    constexpr std::uint64_t most_pending = std::uint64_t{1} << 20;
    Settings settings;
    const auto optional = [&](const char* name, std::uint64_t most, std::uint64_t usual) {
      return options.Get(name).IsUndefined() ? usual : convert::to_whole(options.Get(name), most, name);
    };
    const auto count = [](std::chrono::milliseconds time) { return static_cast<std::uint64_t>(time.count()); };
    settings.cache = std::chrono::milliseconds(optional("cacheMs", most_milliseconds, count(settings.cache)));
    settings.deadline = std::chrono::milliseconds(optional("deadlineMs", most_milliseconds, count(settings.deadline)));
    settings.max_pending = optional("maxPending", most_pending, settings.max_pending);
    NodeSpec root = convert::to_node(options.Get("root"));
    if (root.inode != root_inode || root.kind != Kind::Directory) {
      throw Napi::TypeError::New(info.Env(), "root is not a directory with inode 1");
    }
    const auto bridge = std::make_shared<Bridge>(options);
    Descriptor connection(static_cast<int>(convert::to_whole(options.Get("fd"), most_descriptor, "fd")));
    bridge->start(info.Env(), std::move(connection), settings, std::move(root));
    return make_session_object(info.Env(), bridge);
  });
}

Napi::Value open_connection_for(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Descriptor connection =
        open_connection(convert::to_text(info[0], "mountpoint"), convert::to_text(info[1], "source"),
                        convert::to_boolean(info[2], "allowOther"));
    Napi::Object result = Napi::Object::New(info.Env());
    result.Set("fd", connection.release());
    return result;
  });
}

Napi::Value unmount_for(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    unmount(convert::to_text(info[0], "mountpoint"), convert::to_boolean(info[1], "lazy"));
    return info.Env().Undefined();
  });
}

Napi::Value list_for(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    Napi::Array result = Napi::Array::New(info.Env());
    for (const MountEntry& mount : list_fuse_mounts()) {
      Napi::Object entry = Napi::Object::New(info.Env());
      entry.Set("mountpoint", mount.mountpoint);
      entry.Set("type", mount.type);
      entry.Set("source", mount.source);
      entry.Set("connection", mount.connection);
      result.Set(result.Length(), entry);
    }
    return result;
  });
}

}  // namespace
}  // namespace bridle::fuse

void register_fuse(Napi::Env env, Napi::Object exports) {
  exports.Set("openConnection", Napi::Function::New(env, bridle::fuse::open_connection_for, "openConnection"));
  exports.Set("serve", Napi::Function::New(env, bridle::fuse::serve, "serve"));
  exports.Set("unmount", Napi::Function::New(env, bridle::fuse::unmount_for, "unmount"));
  exports.Set("listFuseMounts", Napi::Function::New(env, bridle::fuse::list_for, "listFuseMounts"));
}
