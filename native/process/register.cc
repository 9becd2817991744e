#include "register.h"

#include <memory>
#include <string>
#include <utility>

#include "linux/exit_reporter.h"
#include "linux/spawner.h"
#include "process.h"
#include "system_error.h"

namespace {

using bridle::SystemError;

/// What one environment (the main thread or a worker) owns; dropped when it ends.
struct Environment {
  explicit Environment(Napi::Env env) : exits(std::make_shared<bridle::ExitReporter>(env)) {}
  std::shared_ptr<bridle::ExitReporter> exits;
  std::shared_ptr<bridle::Spawner> spawner;
};

/// Runs a function and turns a failed system call into an Error with `code` and the step.
template <typename Function>
auto guarded(Napi::Env env, const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const SystemError& failure) {
    const Napi::Error error = Napi::Error::New(env, failure.what());
    error.Set("code", bridle::errno_name(failure.code()));
    error.Set("step", failure.step());
    throw error;
  } catch (const Napi::Error&) {
    throw;
  } catch (const std::exception& failure) {
    throw Napi::Error::New(env, failure.what());
  }
}

std::string text_argument(const Napi::CallbackInfo& info, std::size_t at) {
  if (!info[at].IsString()) throw Napi::TypeError::New(info.Env(), "expected a string");
  std::string text = info[at].As<Napi::String>();
  if (text.find('\0') != std::string::npos) throw Napi::TypeError::New(info.Env(), "a string holds NUL");
  return text;
}

int integer_argument(const Napi::CallbackInfo& info, std::size_t at) {
  if (!info[at].IsNumber()) throw Napi::TypeError::New(info.Env(), "expected a number");
  const double value = info[at].As<Napi::Number>().DoubleValue();
  const int integer = info[at].As<Napi::Number>().Int32Value();
  if (static_cast<double>(integer) != value) throw Napi::RangeError::New(info.Env(), "expected a 32-bit integer");
  return integer;
}

Napi::Value spawn_supervisor(Environment& environment, const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::string executable = text_argument(info, 0);
  if (!info[1].IsFunction()) throw Napi::TypeError::New(env, "expected a function");
  if (!environment.spawner) environment.spawner = bridle::Spawner::acquire();
  auto exits = environment.exits;
  const std::uint32_t id = exits->add(info[1].As<Napi::Function>());
  bridle::SupervisorProcess process;
  try {
    process = environment.spawner->spawn(executable, [exits, id](int status) { exits->report(id, status); });
  } catch (...) {
    exits->drop(id);
    throw;
  }
  Napi::Object handle = Napi::Object::New(env);
  handle.Set("pid", process.pid);
  handle.Set("control", process.control.release());
  handle.Set("stdin", process.stdin_end.release());
  handle.Set("stdout", process.stdout_end.release());
  handle.Set("stderr", process.stderr_end.release());
  return handle;
}

Napi::Value identify(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto identity = bridle::identify(integer_argument(info, 0));
  if (!identity) return env.Null();
  Napi::Object result = Napi::Object::New(env);
  result.Set("pid", static_cast<double>(identity->pid));
  result.Set("token", identity->token);
  result.Set("scheme", identity->scheme);
  return result;
}

Napi::Value signal_process(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!info[0].IsObject()) throw Napi::TypeError::New(env, "expected an identity");
  const auto source = info[0].As<Napi::Object>();
  const bridle::ProcessIdentity identity{source.Get("pid").ToNumber().Int64Value(), source.Get("token").ToString(),
                                         source.Get("scheme").ToString()};
  switch (bridle::signal_process(identity, integer_argument(info, 1))) {
    case bridle::SignalResult::sent:
      return Napi::String::New(env, "sent");
    case bridle::SignalResult::gone:
      return Napi::String::New(env, "gone");
    case bridle::SignalResult::mismatch:
      break;
  }
  return Napi::String::New(env, "mismatch");
}

Napi::Value probe_containment(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const auto support = bridle::probe_containment();
  Napi::Object result = Napi::Object::New(env);
  result.Set("pidfd", support.pidfd);
  result.Set("pidfs", support.pidfs);
  result.Set("subreaper", support.subreaper);
  result.Set("cgroupRoot",
             support.cgroup_root ? Napi::Value(Napi::String::New(env, *support.cgroup_root)) : env.Null());
  return result;
}

Napi::Value peer_credentials(const Napi::CallbackInfo& info) {
  const auto credentials = bridle::peer_credentials(integer_argument(info, 0));
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("uid", static_cast<double>(credentials.uid));
  result.Set("gid", static_cast<double>(credentials.gid));
  result.Set("pid", static_cast<double>(credentials.pid));
  return result;
}

Napi::Value notify_systemd(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), bridle::notify_systemd(text_argument(info, 0)));
}

Napi::Value try_lock(const Napi::CallbackInfo& info) {
  return Napi::Boolean::New(info.Env(), bridle::try_lock(integer_argument(info, 0)));
}

using Binding = Napi::Value (*)(const Napi::CallbackInfo&);

void bind(Napi::Object exports, const char* name, Binding binding) {
  exports.Set(name, Napi::Function::New(
                        exports.Env(),
                        [binding](const Napi::CallbackInfo& info) {
                          return guarded(info.Env(), [&] { return binding(info); });
                        },
                        name));
}

}  // namespace

void register_process(Napi::Env env, Napi::Object exports) {
  auto environment = std::make_shared<Environment>(env);
  env.AddCleanupHook([environment] {
    environment->exits->close();
    environment->spawner.reset();
  });
  exports.Set("spawnSupervisor", Napi::Function::New(
                                     env,
                                     [environment](const Napi::CallbackInfo& info) {
                                       return guarded(info.Env(), [&] { return spawn_supervisor(*environment, info); });
                                     },
                                     "spawnSupervisor"));
  bind(exports, "identify", identify);
  bind(exports, "signalProcess", signal_process);
  bind(exports, "probeContainment", probe_containment);
  bind(exports, "peerCredentials", peer_credentials);
  bind(exports, "notifySystemd", notify_systemd);
  bind(exports, "tryLock", try_lock);
}
