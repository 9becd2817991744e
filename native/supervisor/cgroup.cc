#include "cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "../process/linux/proc.h"
#include "../process/system_error.h"

namespace bridle::supervisor {
namespace {

/// Deeper trees than this are left to the next attempt to remove them, which finds them shorter, and to `kill`.
constexpr int max_depth = 64;

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { closedir(directory); }
};

bool write_text(int directory, const char* name, std::string_view text) {
  const UniqueFd fd(openat(directory, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  return fd && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Calls with each cgroup directly below, open, and its name.
void for_each_below(int parent, const std::function<void(int child, const char* name)>& act) {
  const int copy = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return;
  const std::unique_ptr<DIR, CloseDirectory> entries(fdopendir(copy));
  if (!entries) {
    close(copy);
    return;
  }
  while (const dirent* entry = readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (entry->d_type != DT_DIR || name == "." || name == "..") continue;
    const UniqueFd child(openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (child) act(child.get(), entry->d_name);
  }
}

void remove_below(int parent, int depth) {
  if (depth > max_depth) return;
  for_each_below(parent, [&](int child, const char* name) {
    remove_below(child, depth + 1);
    unlinkat(parent, name, AT_REMOVEDIR);
  });
}

void list_processes(int directory, int depth, std::vector<pid_t>& processes) {
  if (depth > max_depth) return;
  const auto members = read_pids(directory, "cgroup.procs");
  processes.insert(processes.end(), members.begin(), members.end());
  for_each_below(directory, [&](int child, const char*) { list_processes(child, depth + 1, processes); });
}

}  // namespace

Cgroup::Cgroup(std::string path) : path_(std::move(path)) {
  if (mkdir(path_.c_str(), 0755) != 0) throw_errno("cgroup " + path_);
  directory_ = UniqueFd(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (!directory_ || fstat(directory_.get(), &info) != 0) {
    const int code = errno;
    rmdir(path_.c_str());
    throw SystemError(code, "cgroup " + path_);
  }
  inode_ = info.st_ino;
}

void Cgroup::set(const std::string& file, const std::string& value) const {
  if (!write_text(directory_.get(), file.c_str(), value)) throw_errno("limits " + file);
}

bool Cgroup::adopt(int pid) const { return write_text(directory_.get(), "cgroup.procs", std::to_string(pid)); }

void Cgroup::kill() const { write_text(directory_.get(), "cgroup.kill", "1"); }

bool Cgroup::populated() const {
  const UniqueFd fd(openat(directory_.get(), "cgroup.events", O_RDONLY | O_CLOEXEC));
  // A cgroup that somebody removed holds nothing.
  if (!fd) return errno != ENOENT;
  std::array<char, 256> buffer{};
  const ssize_t size = read(fd.get(), buffer.data(), buffer.size());
  if (size < 0) return errno != ENODEV;
  return std::string_view(buffer.data(), static_cast<std::size_t>(size)).find("populated 0") == std::string_view::npos;
}

std::vector<pid_t> Cgroup::processes() const {
  std::vector<pid_t> processes;
  list_processes(directory_.get(), 0, processes);
  return processes;
}

bool Cgroup::remove() const {
  if (rmdir(path_.c_str()) == 0 || errno == ENOENT) return true;
  remove_below(directory_.get(), 0);
  return rmdir(path_.c_str()) == 0 || errno == ENOENT;
}

}  // namespace bridle::supervisor
