#pragma once

#include <napi.h>

/// Exports the functions that src/native/fuse.ts documents.
void register_fuse(Napi::Env env, Napi::Object exports);
