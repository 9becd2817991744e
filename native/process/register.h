#pragma once

#include <napi.h>

/// Exports the functions that src/native/process.ts and src/native/system.ts document.
void register_process(Napi::Env env, Napi::Object exports);
