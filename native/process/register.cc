#include "register.h"

#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "linux/process_reporter.h"
#include "linux/spawner.h"
#include "process.h"
#include "system_error.h"

namespace {

using bridle::SystemError;

/// What one environment (the main thread or a worker) owns; dropped when it ends.
struct Environment {
  explicit Environment(Napi::Env env) : reporter(std::make_shared<bridle::ProcessReporter>(env)) {}
  std::shared_ptr<bridle::ProcessReporter> reporter;
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

/// Passes what becomes of one supervisor on to the environment that asked for it.
class Listener : public bridle::SupervisorListener {
 public:
  Listener(std::shared_ptr<bridle::ProcessReporter> reporter, std::uint32_t id)
      : reporter_(std::move(reporter)), id_(id) {}
  void spawned(pid_t pid) override { reporter_->spawned(id_, pid); }
  void failed(const std::string& reason) override { reporter_->failed(id_, reason); }
  void exited(int status) override { reporter_->exited(id_, status); }

 private:
  std::shared_ptr<bridle::ProcessReporter> reporter_;
  std::uint32_t id_;
};

Napi::Value descriptor(Napi::Env env, bridle::UniqueFd& fd) { return Napi::Number::New(env, fd.release()); }

Napi::Value spawn_supervisor(Environment& environment, const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  bridle::SupervisorLaunch launch{text_argument(info, 0), text_argument(info, 1), {}};
  if (launch.lease.size() != bridle::lease_id_size)
    throw Napi::RangeError::New(env, "expected a lease of 32 characters");
  if (!info[2].IsTypedArray()) throw Napi::TypeError::New(env, "expected bytes");
  if (!info[3].IsFunction() || !info[4].IsFunction()) throw Napi::TypeError::New(env, "expected two functions");
  const auto order = info[2].As<Napi::Uint8Array>();
  bridle::SupervisorEnds ours = connect(launch);
  // Before the supervisor is asked for, so that it need not wait.
  const ssize_t sent = send(ours.control.get(), order.Data(), order.ByteLength(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (!environment.spawner) environment.spawner = bridle::Spawner::acquire();
  const std::uint32_t id = environment.reporter->add(info[3].As<Napi::Function>(), info[4].As<Napi::Function>());
  environment.spawner->spawn(std::move(launch), std::make_unique<Listener>(environment.reporter, id));
  Napi::Object handle = Napi::Object::New(env);
  handle.Set("control", descriptor(env, ours.control));
  handle.Set("sent", static_cast<double>(std::max<ssize_t>(sent, 0)));
  handle.Set("stdin", descriptor(env, ours.stdin_end));
  handle.Set("stdout", descriptor(env, ours.stdout_end));
  handle.Set("stderr", descriptor(env, ours.stderr_end));
  handle.Set("gate", descriptor(env, ours.gate));
  return handle;
}

Napi::Value identify(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const std::string scheme = info[1].IsString() ? text_argument(info, 1) : std::string();
  const auto identity = bridle::identify(integer_argument(info, 0), scheme);
  if (!identity) return env.Null();
  Napi::Object result = Napi::Object::New(env);
  result.Set("pid", static_cast<double>(identity->pid));
  result.Set("token", identity->token);
  result.Set("scheme", identity->scheme);
  return result;
}

std::optional<bridle::SignalProof> proof_argument(const Napi::CallbackInfo& info, std::size_t at) {
  if (!info[at].IsObject()) return std::nullopt;
  const auto proof = info[at].As<Napi::Object>();
  return bridle::SignalProof{proof.Get("lease").ToString(), proof.Get("cgroup").ToString()};
}

Napi::Value signal_process(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!info[0].IsObject()) throw Napi::TypeError::New(env, "expected an identity");
  const auto source = info[0].As<Napi::Object>();
  const bridle::ProcessIdentity identity{source.Get("pid").ToNumber().Int64Value(), source.Get("token").ToString(),
                                         source.Get("scheme").ToString()};
  switch (bridle::signal_process(identity, integer_argument(info, 1), proof_argument(info, 2))) {
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
  result.Set("landlock", support.landlock ? Napi::Value(Napi::Number::New(env, *support.landlock)) : env.Null());
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
    environment->reporter->close();
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
