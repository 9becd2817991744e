{
  "targets": [
    {
      "target_name": "bridle",
      "sources": [
        "native/addon.cc",
        "native/fuse/buffer_pool.cc",
        "native/fuse/caller.cc",
        "native/fuse/connection.cc",
        "native/fuse/convert.cc",
        "native/fuse/descriptor_cache.cc",
        "native/fuse/followers.cc",
        "native/fuse/handlers_ask.cc",
        "native/fuse/handlers_change.cc",
        "native/fuse/handlers_follow.cc",
        "native/fuse/handlers_list.cc",
        "native/fuse/handlers_read.cc",
        "native/fuse/inbox.cc",
        "native/fuse/inbox_file.cc",
        "native/fuse/mountinfo.cc",
        "native/fuse/names.cc",
        "native/fuse/node_table.cc",
        "native/fuse/notifier.cc",
        "native/fuse/operations.cc",
        "native/fuse/pending.cc",
        "native/fuse/register.cc",
        "native/fuse/row_position.cc",
        "native/fuse/session.cc",
        "native/fuse/wait_readable.cc",
        "native/fuse/wake_signal.cc",
        "native/fuse/worker.cc",
        "native/process/linux/birth_token.cc",
        "native/process/linux/containment.cc",
        "native/process/linux/process_reporter.cc",
        "native/process/linux/landlock.cc",
        "native/process/linux/pidfd.cc",
        "native/process/linux/proc.cc",
        "native/process/linux/fork_client.cc",
        "native/process/linux/spawner.cc",
        "native/process/linux/system.cc",
        "native/process/linux/system_error.cc",
        "native/process/register.cc"
      ],
      "include_dirs": [
        ".",
        "<!(node -p \"require('node-api-headers').include_dir\")",
        "<!(node -p \"require('node-addon-api').include_dir\")"
      ],
      "defines": ["NAPI_VERSION=9", "NAPI_CPP_EXCEPTIONS", "NODE_ADDON_API_DISABLE_DEPRECATED"],
      "cflags": ["<!@(pkg-config --cflags fuse3)", "-Wall", "-Wextra", "-fstack-protector-strong"],
      "cflags_cc!": ["-std=gnu++17", "-std=gnu++20", "-fno-rtti", "-fno-exceptions"],
      "cflags_cc": ["-std=c++20", "-fvisibility=hidden", "-fvisibility-inlines-hidden"],
      "libraries": ["<!@(pkg-config --libs fuse3)"],
      "ldflags": ["-Wl,-z,relro", "-Wl,-z,now", "-Wl,--version-script=<(module_root_dir)/native/exports.map", "-pthread"]
    }
  ]
}
