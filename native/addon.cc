#include <napi.h>

#include "native/process/register.h"
#ifndef _WIN32
#include "native/fuse/register.h"
#endif

namespace {

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
#ifndef _WIN32
  register_fuse(env, exports);
#endif
  register_process(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(bridle, initialise)
