#include <napi.h>

#include "native/fuse/register.h"
#include "native/process/register.h"

namespace {

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  register_fuse(env, exports);
  register_process(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(bridle, initialise)
