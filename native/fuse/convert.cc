#include "convert.h"

#include <memory>
#include <utility>

namespace bridle::fuse::convert {
namespace {

constexpr std::uint64_t most_ids = 0xffffffff;
constexpr std::uint64_t most_mode = 07777;
constexpr std::uint64_t most_name = 255;

[[noreturn]] void refuse(Napi::Env env, const char* what, const char* expected) {
  throw Napi::TypeError::New(env, std::string(what) + " is not " + expected);
}

Napi::Object to_object(Napi::Value value, const char* what) {
  if (!value.IsObject()) refuse(value.Env(), what, "an object");
  return value.As<Napi::Object>();
}

SharedBytes to_bytes(Napi::Value value) {
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array) {
    refuse(value.Env(), "bytes", "a Uint8Array");
  }
  const auto array = value.As<Napi::Uint8Array>();
  return std::make_shared<const std::string>(reinterpret_cast<const char*>(array.Data()), array.ByteLength());
}

std::string to_name(Napi::Value value) {
  std::string name = to_text(value, "name");
  const bool bad =
      name.empty() || name.size() > most_name || name == "." || name == ".." || name.find('/') != std::string::npos;
  if (bad) refuse(value.Env(), "name", "the name of a directory entry");
  return name;
}

Inode to_inode(Napi::Value value, const char* what) {
  const Inode inode = to_whole(value, inode_mask, what);
  if (inode == 0) refuse(value.Env(), what, "an inode number");
  return inode;
}

}  // namespace

std::string to_text(Napi::Value value, const char* what) {
  if (!value.IsString()) refuse(value.Env(), what, "a string");
  std::string text = value.As<Napi::String>();
  if (text.find('\0') != std::string::npos) refuse(value.Env(), what, "free of NUL");
  return text;
}

bool to_boolean(Napi::Value value, const char* what) {
  if (!value.IsBoolean()) refuse(value.Env(), what, "a boolean");
  return value.As<Napi::Boolean>();
}

std::uint64_t to_whole(Napi::Value value, std::uint64_t most, const char* what) {
  if (!value.IsNumber()) refuse(value.Env(), what, "a number");
  const double number = value.As<Napi::Number>().DoubleValue();
  if (!(number >= 0 && number <= static_cast<double>(most))) {
    throw Napi::RangeError::New(value.Env(), std::string(what) + " is out of range");
  }
  const auto whole = static_cast<std::uint64_t>(number);
  if (static_cast<double>(whole) != number) refuse(value.Env(), what, "a whole number");
  return whole;
}

Napi::Function to_function(Napi::Value value, const char* what) {
  if (!value.IsFunction()) refuse(value.Env(), what, "a function");
  return value.As<Napi::Function>();
}

NodeSpec to_node(Napi::Value value) {
  const Napi::Object object = to_object(value, "node");
  NodeSpec node;
  node.inode = to_inode(object.Get("inode"), "inode");
  node.attributes = {
      .mode = static_cast<mode_t>(to_whole(object.Get("mode"), most_mode, "mode")),
      .uid = static_cast<uid_t>(to_whole(object.Get("uid"), most_ids, "uid")),
      .gid = static_cast<gid_t>(to_whole(object.Get("gid"), most_ids, "gid")),
      // JavaScript's clock has fractions of a millisecond.
      .time_ms = object.Get("time").IsNumber() ? object.Get("time").As<Napi::Number>().Int64Value() : 0,
  };
  const std::string kind = to_text(object.Get("kind"), "kind");
  if (kind == "directory") {
    node.kind = Kind::Directory;
  } else if (kind == "bytes" || kind == "control") {
    node.kind = kind == "bytes" ? Kind::Bytes : Kind::Control;
    node.bytes = to_bytes(object.Get("bytes"));
  } else if (kind == "file" || kind == "inbox" || kind == "follow") {
    node.kind = kind == "file" ? Kind::File : kind == "inbox" ? Kind::Inbox : Kind::Follow;
    node.path = std::make_shared<const std::string>(to_text(object.Get("path"), "path"));
  } else {
    refuse(value.Env(), "kind", "a kind of node");
  }
  return node;
}

std::vector<Change> to_changes(Napi::Value value) {
  if (!value.IsArray()) refuse(value.Env(), "changes", "an array");
  const auto array = value.As<Napi::Array>();
  std::vector<Change> changes;
  changes.reserve(array.Length());
  for (std::uint32_t i = 0; i < array.Length(); ++i) {
    const Napi::HandleScope scope(value.Env());
    const Napi::Object object = to_object(array.Get(i), "change");
    const std::string op = to_text(object.Get("op"), "op");
    if (op == "grow") {
      changes.push_back({.op = Change::Op::Grow, .parent = to_inode(object.Get("inode"), "inode")});
      continue;
    }
    Change change{
        .op = Change::Op::Put, .parent = to_inode(object.Get("parent"), "parent"), .name = to_name(object.Get("name"))};
    if (op == "put") {
      change.node = to_node(object.Get("node"));
    } else if (op == "remove") {
      change.op = Change::Op::Remove;
    } else if (op == "consume") {
      change.op = Change::Op::Consume;
    } else {
      refuse(value.Env(), "op", "a kind of change");
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

Napi::Object from_question(Napi::Env env, const Question& question) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("token", static_cast<double>(question.token));
  object.Set("uid", static_cast<double>(question.uid));
  object.Set("gid", static_cast<double>(question.gid));
  object.Set("pid", static_cast<double>(question.pid));
  const auto inode = static_cast<double>(question.inode);
  const auto bytes = [&]() -> Napi::Value {
    if (!question.bytes) return env.Null();
    return Napi::Buffer<char>::Copy(env, question.bytes->data(), question.bytes->size());
  };
  switch (question.op) {
    case Question::Op::Handoff:
      object.Set("op", "handoff");
      object.Set("inbox", inode);
      object.Set("temporary", question.temporary);
      object.Set("name", question.name);
      object.Set("bytes", bytes());
      break;
    case Question::Op::Mkdir:
      object.Set("op", "mkdir");
      object.Set("parent", inode);
      object.Set("name", question.name);
      object.Set("mode", static_cast<double>(question.mode));
      break;
    case Question::Op::Control:
      object.Set("op", "control");
      object.Set("inode", inode);
      object.Set("bytes", bytes());
      break;
    case Question::Op::Fsync:
      object.Set("op", "fsync");
      object.Set("inbox", inode);
      break;
  }
  return object;
}

Napi::Object from_statistics(Napi::Env env, const Statistics& statistics) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("requests", static_cast<double>(statistics.requests));
  object.Set("handedToJs", static_cast<double>(statistics.asked));
  object.Set("following", static_cast<double>(statistics.following));
  object.Set("nodes", static_cast<double>(statistics.nodes));
  object.Set("threads", static_cast<double>(statistics.threads));
  object.Set("lastAnswer", static_cast<double>(statistics.last_answer_ms));
  return object;
}

}  // namespace bridle::fuse::convert
