#include "proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>

#include "unique_fd.h"

namespace bridle {
namespace {

constexpr std::size_t max_small_file = 1024UL * 1024;

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { closedir(directory); }
};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = text.find_first_of(" \n");
    if (end != 0) words.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return words;
}

std::optional<pid_t> to_pid(std::string_view word) {
  pid_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || value <= 0) return std::nullopt;
  return value;
}

std::optional<std::string> read_small_file_at(int directory, const char* path) {
  const UniqueFd fd(openat(directory, path, O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string content;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t size = read(fd.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return std::nullopt;
    if (size == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(size));
    if (content.size() > max_small_file) return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> read_small_file(const std::string& path) {
  return read_small_file_at(AT_FDCWD, path.c_str());
}

std::optional<ProcessStat> read_process_stat(pid_t pid) {
  const auto text = read_small_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::nullopt;
  // The command may hold spaces and parentheses, so the last parenthesis ends it.
  const auto open_at = text->find('(');
  const auto close_at = text->rfind(')');
  if (open_at == std::string::npos || close_at == std::string::npos || close_at < open_at) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(close_at + 1));
  constexpr std::size_t state_field = 0;
  constexpr std::size_t parent_field = 1;
  constexpr std::size_t start_field = 19;
  if (fields.size() <= start_field) return std::nullopt;
  ProcessStat stat;
  stat.command = text->substr(open_at + 1, close_at - open_at - 1);
  stat.state = fields[state_field].front();
  stat.parent = to_pid(fields[parent_field]).value_or(0);
  stat.start_time = std::string(fields[start_field]);
  return stat;
}

std::vector<pid_t> read_pids(int directory, const char* path) {
  std::vector<pid_t> pids;
  const auto list = read_small_file_at(directory, path);
  if (!list) return pids;
  for (const auto word : split(*list)) {
    if (const auto pid = to_pid(word)) pids.push_back(*pid);
  }
  return pids;
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  const auto of_thread = [&tasks](const std::string& thread) {
    return read_pids(AT_FDCWD, (tasks + "/" + thread + "/children").c_str());
  };
  // The directory has two links and one more for each thread. Most processes have one, and no need of a listing.
  struct stat info{};
  if (stat(tasks.c_str(), &info) == 0 && info.st_nlink == 3) return of_thread(std::to_string(pid));
  std::vector<pid_t> children;
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir(tasks.c_str()));
  if (!directory) return children;
  while (const dirent* entry = readdir(directory.get())) {
    if (!to_pid(entry->d_name)) continue;
    const auto more = of_thread(entry->d_name);
    children.insert(children.end(), more.begin(), more.end());
  }
  return children;
}

std::vector<pid_t> children_of_thread() { return read_pids(AT_FDCWD, "/proc/thread-self/children"); }

}  // namespace bridle
