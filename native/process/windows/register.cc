#include "../register.h"

#include <memory>
#include <string>
#include <utility>

#include "../process.h"
#include "../system_error.h"
#include "birth_token.h"
#include "exit_reporter.h"
#include "exit_watch.h"
#include "held_process.h"

namespace {

using bridle::SystemError;

/// A child for as long as JavaScript has its handle. The watch goes first: it uses the process.
struct Held {
  explicit Held(bridle::Launch launch) : process(std::make_unique<bridle::HeldProcess>(std::move(launch))) {}
  std::unique_ptr<bridle::HeldProcess> process;
  std::unique_ptr<bridle::ExitWatch> watch;
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

/// May hold NUL: an environment block does.
std::wstring wide(const Napi::Value& value) {
  if (!value.IsString()) throw Napi::TypeError::New(value.Env(), "expected a string");
  const std::u16string text = value.As<Napi::String>();
  return {text.begin(), text.end()};
}

std::wstring wide_without_nul(const Napi::Value& value) {
  std::wstring text = wide(value);
  if (text.find(L'\0') != std::wstring::npos) throw Napi::TypeError::New(value.Env(), "a string holds NUL");
  return text;
}

bridle::Launch launch_argument(const Napi::CallbackInfo& info) {
  if (!info[0].IsObject()) throw Napi::TypeError::New(info.Env(), "expected a launch");
  const auto source = info[0].As<Napi::Object>();
  const auto text = [&](const char* name) { return wide_without_nul(source.Get(name)); };
  return {text("program"),
          text("commandLine"),
          text("directory"),
          wide(source.Get("environment")),
          {text("stdin"), text("stdout"), text("stderr")}};
}

std::uint32_t code_argument(const Napi::CallbackInfo& info) {
  if (!info[0].IsNumber()) throw Napi::TypeError::New(info.Env(), "expected an exit code");
  return info[0].As<Napi::Number>().Uint32Value();
}

Napi::Object identity_object(Napi::Env env, const bridle::ProcessIdentity& identity) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("pid", static_cast<double>(identity.pid));
  result.Set("token", identity.token);
  result.Set("scheme", identity.scheme);
  return result;
}

Napi::Array process_ids(Napi::Env env, const bridle::HeldProcess& process) {
  Napi::Array result = Napi::Array::New(env);
  for (const std::uint32_t pid : process.processes()) result.Set(result.Length(), Napi::Number::New(env, pid));
  return result;
}

/// Sets a function of the handle, which fails once the handle is closed.
template <typename Method>
void set_method(Napi::Object handle, const std::shared_ptr<Held>& held, const char* name, Method method) {
  handle.Set(name, Napi::Function::New(
                       handle.Env(),
                       [held, method](const Napi::CallbackInfo& info) -> Napi::Value {
                         return guarded(info.Env(), [&]() -> Napi::Value {
                           if (!held->process) throw Napi::Error::New(info.Env(), "the job is closed");
                           return method(*held->process, info);
                         });
                       },
                       name));
}

Napi::Value hold_in_job(const std::shared_ptr<bridle::ExitReporter>& reporter, const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!info[1].IsFunction()) throw Napi::TypeError::New(env, "expected a function");
  const auto held = std::make_shared<Held>(launch_argument(info));
  const std::uint32_t id = reporter->add(info[1].As<Napi::Function>());
  try {
    held->watch = std::make_unique<bridle::ExitWatch>(held->process->process(), reporter, id);
  } catch (const SystemError&) {
    reporter->forget(env, id);
    throw;
  }

  Napi::Object handle = Napi::Object::New(env);
  handle.Set("child",
             identity_object(env, {held->process->pid(), held->process->token(), bridle::creationtime_scheme}));
  set_method(handle, held, "assign", [](bridle::HeldProcess& process, const Napi::CallbackInfo& call) {
    process.assign();
    return call.Env().Undefined();
  });
  set_method(handle, held, "resume", [](bridle::HeldProcess& process, const Napi::CallbackInfo& call) {
    process.resume();
    return call.Env().Undefined();
  });
  set_method(handle, held, "terminate", [](bridle::HeldProcess& process, const Napi::CallbackInfo& call) {
    process.terminate(code_argument(call));
    return call.Env().Undefined();
  });
  set_method(handle, held, "active", [](bridle::HeldProcess& process, const Napi::CallbackInfo& call) {
    return Napi::Number::New(call.Env(), process.active());
  });
  set_method(handle, held, "processes", [](bridle::HeldProcess& process, const Napi::CallbackInfo& call) {
    return process_ids(call.Env(), process);
  });
  handle.Set("close", Napi::Function::New(env, [held, reporter, id](const Napi::CallbackInfo& call) {
               held->watch.reset();
               held->process.reset();
               reporter->forget(call.Env(), id);
             }));
  return handle;
}

Napi::Value identify(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  if (!info[0].IsNumber()) throw Napi::TypeError::New(env, "expected a number");
  const auto identity = bridle::identify(info[0].As<Napi::Number>().Int64Value());
  if (!identity) return env.Null();
  return identity_object(env, *identity);
}

}  // namespace

void register_process(Napi::Env env, Napi::Object exports) {
  const auto reporter = std::make_shared<bridle::ExitReporter>(env);
  env.AddCleanupHook([reporter] { reporter->close(); });
  exports.Set("holdInJob", Napi::Function::New(
                               env,
                               [reporter](const Napi::CallbackInfo& info) {
                                 return guarded(info.Env(), [&] { return hold_in_job(reporter, info); });
                               },
                               "holdInJob"));
  exports.Set(
      "identify",
      Napi::Function::New(
          env, [](const Napi::CallbackInfo& info) { return guarded(info.Env(), [&] { return identify(info); }); },
          "identify"));
}
