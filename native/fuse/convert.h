#pragma once

#include <napi.h>

#include <string>
#include <vector>

#include "pending.h"
#include "session.h"

/// Between JavaScript values (src/native/fuse.ts) and ours. Wrong values throw a TypeError or RangeError.
namespace bridle::fuse::convert {

std::string to_text(Napi::Value value, const char* what);
bool to_boolean(Napi::Value value, const char* what);
/// A whole number from 0 to `most`.
std::uint64_t to_whole(Napi::Value value, std::uint64_t most, const char* what);
Napi::Function to_function(Napi::Value value, const char* what);
NodeSpec to_node(Napi::Value value);
std::vector<Change> to_changes(Napi::Value value);
Napi::Object from_question(Napi::Env env, const Question& question);
Napi::Object from_statistics(Napi::Env env, const Statistics& statistics);

}  // namespace bridle::fuse::convert
