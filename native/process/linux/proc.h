#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace bridle {

/// Content of a small file of procfs or cgroupfs, at most 1 MiB; nothing when it cannot be read.
std::optional<std::string> read_small_file(const std::string& path);

/// Fields of /proc/<pid>/stat that identify a process.
struct ProcessStat {
  std::string command;
  char state = '?';
  pid_t parent = 0;
  std::string start_time;
};

std::optional<ProcessStat> read_process_stat(pid_t pid);

/// The process ids in a file of procfs or cgroupfs that lists them; none when it cannot be read.
/// @param directory an open directory that a relative `path` counts from
std::vector<pid_t> read_pids(int directory, const char* path);

/// Process ids of the children of a process, whichever of its threads made them.
std::vector<pid_t> children_of(pid_t pid);

/// Process ids of the children that the calling thread forked.
std::vector<pid_t> children_of_thread();

}  // namespace bridle
