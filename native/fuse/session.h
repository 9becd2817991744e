#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "buffer_pool.h"
#include "core.h"
#include "fuse_api.h"

namespace bridle::fuse {

struct Change {
  enum class Op : std::uint8_t { Put, Remove, Grow, Consume };
  Op op;
  Inode parent = 0;  // Grow: the inode itself
  std::string name;
  NodeSpec node;
};

struct Statistics {
  std::uint64_t requests;
  std::uint64_t asked;
  std::size_t following;
  std::size_t nodes;
  std::size_t threads;
  std::int64_t last_answer_ms;
};

/**
 * Serves one mounted connection: a few threads that read requests and answer them.
 *
 * Each waits in read(2), where the kernel wakes one of them for a request; a signal wakes them to stop.
 *
 * Lock: stop_mutex_, never held by a session thread.
 */
class Session {
 public:
  /**
   * Answers INIT and starts the threads.
   * @param connection an open /dev/fuse of a connection that was mounted and not yet served
   * @param wake see Pending
   * @throws SystemError
   */
  Session(Descriptor connection, const Settings& settings, NodeSpec root, std::function<void()> wake);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Applies changes in order. @throws SystemError that names the first bad one; those before it stay applied
  void publish(std::vector<Change> changes);
  bool answer(std::uint64_t token, int error) { return core_.pending.answer(token, error); }
  std::vector<Event> take_events() { return core_.pending.take_events(); }
  [[nodiscard]] Statistics statistics();
  /// Answers what waits, ends the threads and closes the connection. Blocks for a moment; any thread may call it.
  void stop();

 private:
  void initialise(Descriptor connection);
  void start_threads();
  void serve(std::size_t index);
  /// Waits for a request. @returns its length in the buffer; 0 to try again; -1 when the connection ended
  ssize_t receive(char* buffer) const;
  void end_threads();
  void prepare_inbox(NodeSpec& node);
  void apply(NodeTable::Edit& edit, Change& change);
  void wake_followers(const std::vector<Change>& changes);

  struct Destroy {
    void operator()(fuse_session* session) const { fuse_session_destroy(session); }
  };

  const std::size_t thread_count_;
  BufferPool buffers_;
  Core core_;
  std::unique_ptr<fuse_session, Destroy> session_;
  const int connection_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::int64_t> last_answer_ms_{0};
  std::mutex stop_mutex_;
  bool stopped_ = false;  // under stop_mutex_
  std::atomic<std::size_t> running_{0};
  std::vector<std::thread> threads_;
};

}  // namespace bridle::fuse
