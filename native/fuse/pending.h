#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fuse_api.h"
#include "node_table.h"

namespace bridle::fuse {

/// What JavaScript is asked.
struct Question {
  enum class Op : std::uint8_t { Handoff, Mkdir, Control, Fsync };
  Op op;
  Inode inode = 0;  // the inbox, the parent directory or the control
  std::string name;
  std::string temporary;
  mode_t mode = 0;
  std::optional<std::string> bytes;
  std::uint64_t token = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;
};

struct Event {
  enum class What : std::uint8_t { Request, Abort, End };
  What what;
  std::uint64_t token = 0;
  Question question{};
};

/**
 * Requests that wait for JavaScript. Each is answered exactly once: by JavaScript, by its deadline, by an interrupt of
 * its caller, or by close().
 *
 * Locks: libfuse's lock of a request, then mutex_, then libfuse's lock of the session.
 */
class Pending {
 public:
  /// Ends a request: it must reply. Runs on the thread that brings the answer, without a lock of this class.
  using Completion = std::function<void(fuse_req_t, int error)>;

  /// @param wake called when there are events to take and the last call of take_events() has returned
  Pending(std::size_t limit, std::chrono::milliseconds deadline, std::function<void()> wake);
  ~Pending();
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  /// Asks, or completes at once: EAGAIN (too many), EDEADLK (our own process asks), ESHUTDOWN (closed).
  /// The user data of the request's session must be a Core.
  void ask(fuse_req_t request, Question question, const Completion& completion);
  /// @returns false when it was answered before
  bool answer(std::uint64_t token, int error);
  /// The caller got a signal.
  void interrupt(std::uint64_t token) { abort(token, EINTR); }
  /// Tells JavaScript that the connection ended.
  void announce_end();
  /// JavaScript's thread fetches what happened.
  std::vector<Event> take_events();
  /// Answers everything with ESHUTDOWN and refuses what comes. Safe to call twice, from one thread.
  void close();

  [[nodiscard]] std::uint64_t asked() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    fuse_req_t request;
    Clock::time_point deadline;
    Completion completion;
    bool delivered = false;
  };

  void abort(std::uint64_t token, int error);
  void push(Event event, bool& wake);
  void sweep();

  const std::size_t limit_;
  const std::chrono::milliseconds deadline_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Entry> entries_;  // tokens grow, so the first has the earliest deadline
  std::deque<Event> events_;
  bool woken_ = false;
  bool closed_ = false;
  std::uint64_t last_token_ = 0;
  std::uint64_t asked_ = 0;
  std::thread sweeper_;
};

}  // namespace bridle::fuse
