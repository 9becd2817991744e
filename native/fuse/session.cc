#include "session.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "native/process/system_error.h"
#include "operations.h"
#include "thread.h"
#include "wait_readable.h"
#include "wake_signal.h"

namespace bridle::fuse {
namespace {

constexpr std::size_t header_room = 4096;
constexpr std::size_t request_bytes = max_write_bytes + header_room;
constexpr std::size_t thread_bytes = request_bytes + reply_bytes;
constexpr std::size_t fewest_threads = 2;
constexpr std::size_t most_threads = 4;
constexpr auto init_patience = std::chrono::seconds(5);

std::size_t choose_thread_count() {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), fewest_threads, most_threads);
}

std::int64_t monotonic_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  constexpr std::int64_t ms_per_second = 1000;
  constexpr std::int64_t ns_per_ms = 1'000'000;
  return now.tv_sec * ms_per_second + now.tv_nsec / ns_per_ms;
}

std::uint32_t opcode_of(const char* request) {
  fuse_in_header header{};
  std::memcpy(&header, request, sizeof header);
  return header.opcode;
}

ssize_t read_connection(int fd, void* buffer, size_t length, void* /*user*/) { return ::read(fd, buffer, length); }

ssize_t write_connection(int fd, iovec* parts, int count, void* /*user*/) { return ::writev(fd, parts, count); }

}  // namespace

Session::Session(Descriptor connection, const Settings& settings, NodeSpec root, std::function<void()> wake)
    : thread_count_(choose_thread_count()),
      buffers_(thread_count_ * thread_bytes),
      core_(settings, std::move(root), std::move(wake)),
      connection_(connection.get()) {
  initialise(std::move(connection));
  core_.notifier.start(session_.get());
  start_threads();
}

Session::~Session() { stop(); }

void Session::initialise(Descriptor connection) {
  static const fuse_lowlevel_ops operations = make_operations();
  std::string program = "bridle";
  char* arguments[] = {program.data(), nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, arguments);
  session_.reset(fuse_session_new(&args, &operations, sizeof operations, &core_));
  if (!session_) throw SystemError(EIO, "make a libfuse session");
  fuse_custom_io io{};
  io.read = read_connection;
  io.writev = write_connection;
  const int flags = fcntl(connection_, F_GETFL);
  if (flags < 0 || fcntl(connection_, F_SETFL, flags & ~O_NONBLOCK) != 0) throw_errno("prepare the connection");
  if (!wait_readable(connection_, init_patience)) throw SystemError(ETIMEDOUT, "wait for INIT");
  char* const buffer = buffers_.at(0);
  const ssize_t length = ::read(connection_, buffer, request_bytes);
  if (length < 0) throw_errno("read INIT");
  if (static_cast<std::size_t>(length) < sizeof(fuse_in_header) || opcode_of(buffer) != FUSE_INIT) {
    throw SystemError(EPROTO, "read INIT");
  }
  if (const int error = fuse_session_custom_io(session_.get(), &io, connection_); error != 0) {
    throw SystemError(-error, "attach the connection");
  }
  connection.release();  // the libfuse session closes it
  fuse_buf request{};
  request.size = static_cast<std::size_t>(length);
  request.mem = buffer;
  fuse_session_process_buf(session_.get(), &request);
}

void Session::start_threads() {
  WakeSignal::claim();
  threads_.reserve(thread_count_);
  try {
    for (std::size_t i = 0; i < thread_count_; ++i) {
      running_.fetch_add(1);
      threads_.push_back(start_thread("bridle-fuse", [this, i] { serve(i); }));
    }
  } catch (...) {
    running_.fetch_sub(1);
    end_threads();
    throw;
  }
}

ssize_t Session::receive(char* buffer) const {
  const ssize_t length = ::read(connection_, buffer, request_bytes);
  if (length >= 0) return length;
  // EINTR: time to look whether to stop; ENOENT: the request was interrupted while it was being read.
  if (errno == EINTR || errno == ENOENT) return 0;
  if (errno != EAGAIN) return -1;                                   // ENODEV: unmounted or aborted
  pollfd ready{.fd = connection_, .events = POLLIN, .revents = 0};  // another holder made it non-blocking
  poll(&ready, 1, -1);
  return 0;
}

void Session::serve(std::size_t index) {
  char* const buffer = buffers_.at(index * thread_bytes);
  reply_buffer = buffer + request_bytes;
  WakeSignal::accept();
  bool ended = false;
  while (!stopping_.load(std::memory_order_acquire) && !ended) {
    const ssize_t length = receive(buffer);
    ended = length < 0 || fuse_session_exited(session_.get()) != 0;
    if (length <= 0) continue;
    fuse_buf request{};
    request.size = static_cast<std::size_t>(length);
    request.mem = buffer;
    fuse_session_process_buf(session_.get(), &request);
    requests_.fetch_add(1, std::memory_order_relaxed);
    last_answer_ms_.store(monotonic_ms(), std::memory_order_relaxed);
  }
  const bool last = running_.fetch_sub(1) == 1;
  if (last && !stopping_.load(std::memory_order_acquire)) core_.pending.announce_end();
}

void Session::end_threads() {
  stopping_.store(true, std::memory_order_release);
  constexpr auto between_wake_ups = std::chrono::milliseconds(1);
  while (running_.load() > 0) {
    for (std::thread& thread : threads_) WakeSignal::send(thread);
    std::this_thread::sleep_for(between_wake_ups);
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Session::stop() {
  const std::lock_guard lock(stop_mutex_);
  if (stopped_) return;
  stopped_ = true;
  // The threads go last: a notice may wait for a directory lock that only the answer to another request frees.
  core_.pending.close();
  core_.worker.stop();
  core_.followers.close();
  core_.notifier.stop();
  end_threads();
  session_.reset();
}

Statistics Session::statistics() {
  return {.requests = requests_.load(std::memory_order_relaxed),
          .asked = core_.pending.asked(),
          .following = core_.followers.waiting(),
          .nodes = core_.table.size(),
          .threads = running_.load(),
          .last_answer_ms = last_answer_ms_.load(std::memory_order_relaxed)};
}

void Session::prepare_inbox(NodeSpec& node) {
  View present;
  if (core_.table.find(node.inode, present) == 0 && present.inbox && present.inbox->path() == *node.path) {
    node.inbox = present.inbox;
  } else {
    node.inbox = Inbox::open(node.inode, *node.path, core_.files, core_.descriptors);
  }
}

void Session::apply(NodeTable::Edit& edit, Change& change) {
  int error = 0;
  switch (change.op) {
    case Change::Op::Put:
      error = edit.put(change.parent, change.name, std::move(change.node));
      if (error != 0) throw SystemError(error, "put " + change.name);
      break;
    case Change::Op::Remove:
      error = edit.remove(change.parent, change.name);
      if (error != 0) throw SystemError(error, "remove " + change.name);
      break;
    case Change::Op::Grow:
      break;  // the table has nothing of it
    case Change::Op::Consume:
      core_.worker.post([this, parent = change.parent, name = change.name] {
        View view;
        if (core_.table.find(parent, view) == 0 && view.inbox) view.inbox->consume(name);
      });
      break;
  }
}

void Session::publish(std::vector<Change> changes) {
  // Opening a backing directory reads the disk, so it is done before the table is locked.
  for (Change& change : changes) {
    if (change.op == Change::Op::Put && change.node.kind == Kind::Inbox) prepare_inbox(change.node);
  }
  std::vector<Notice> notices;
  std::vector<Inode> stale_files;
  const auto finish = [&] {
    for (const Inode inode : stale_files) core_.descriptors.drop(inode);
    core_.notifier.post(std::move(notices));
  };
  try {
    NodeTable::Edit edit(core_.table);
    struct Collect {
      NodeTable::Edit& from;
      std::vector<Notice>& notices;
      std::vector<Inode>& stale_files;
      ~Collect() {
        notices = std::move(from.notices);
        stale_files = std::move(from.stale_files);
      }
    } const collect{edit, notices, stale_files};
    for (Change& change : changes) apply(edit, change);
  } catch (...) {
    finish();
    throw;
  }
  finish();
  wake_followers(changes);
}

void Session::wake_followers(const std::vector<Change>& changes) {
  const auto is_removal = [](const Change& change) { return change.op == Change::Op::Remove; };
  if (std::any_of(changes.begin(), changes.end(), is_removal) && core_.followers.removed()) {
    core_.worker.post([this] { core_.followers.wake_all(core_); });
  }
  for (const Change& change : changes) {
    if (change.op != Change::Op::Grow || !core_.followers.grown(change.parent)) continue;
    core_.worker.post([this, inode = change.parent] { core_.followers.wake(core_, inode); });
  }
}

}  // namespace bridle::fuse
