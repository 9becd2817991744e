#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "buffer_pool.h"
#include "fuse_api.h"
#include "node_table.h"
#include "row_position.h"

namespace bridle::fuse {

struct Core;

/**
 * The readers of `follow` files: reads that wait for the next row, and polls that want to hear of it.
 *
 * A handle is only a key to what is known of a reader, so one from before a hand-over to a new process is as good.
 *
 * Lock: mutex_. No file is read, nothing is replied and nothing else but the libfuse session is locked while it is
 * held.
 */
class Followers {
 public:
  /// @param limit reads that may wait at once
  explicit Followers(std::size_t limit);
  ~Followers() { close(); }
  Followers(const Followers&) = delete;
  Followers& operator=(const Followers&) = delete;

  struct Read {
    fuse_req_t request;
    Inode inode;
    std::uint64_t handle;
    std::size_t size;
    off_t offset;
    bool nonblocking;
  };
  struct DestroyPoll {
    void operator()(fuse_pollhandle* poll) const { fuse_pollhandle_destroy(poll); }
  };
  using Poll = std::unique_ptr<fuse_pollhandle, DestroyPoll>;

  std::uint64_t open(Inode inode);
  void release(std::uint64_t handle);
  /// Answers with what is there, or later. @returns 0, or an errno that is then to be replied
  int read(Core& core, const Read& read);
  /// @param poll to be told once the file has grown; may be null
  /// @returns whether a read would not wait
  bool poll(Core& core, Inode inode, std::uint64_t handle, Poll poll);

  /// A file grew. @returns whether somebody waits for that: then call wake()
  bool grown(Inode inode);
  /// Nodes were removed. @returns whether somebody waits: then call wake_all()
  bool removed();
  /// Answers who waited for the file, as far as it has something for them. One thread at a time may call this.
  void wake(Core& core, Inode inode);
  void wake_all(Core& core);
  void interrupt(std::uint64_t token);
  /// Reads that wait now.
  std::size_t waiting();
  /// Answers ESHUTDOWN to who waits, and to reads from now on.
  void close();

 private:
  struct Reader {
    Inode inode;
    off_t next = 0;  // where its last read ended
    RowFinder finder{0};
  };
  using Key = std::pair<Inode, std::uint64_t>;

  int attempt(Core& core, const Read& read, std::uint64_t token, char* buffer);
  /// @param size in: room; out: bytes read, 0 when there is nothing yet
  int fetch(Core& core, const Read& read, char* buffer, std::size_t& size);
  /// Where a position is in the backing file, or -1 when it is beyond all rows. @returns 0 or an errno
  int locate(int fd, std::uint64_t handle, RowPosition position, off_t& at);
  bool has_more(Core& core, Inode inode, std::uint64_t handle);
  std::uint64_t growths();
  std::optional<std::pair<std::uint64_t, Read>> take_waiting(Inode inode, std::uint64_t from);

  const std::size_t limit_;
  const BufferPool buffer_;  // of the thread that wakes
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Reader> readers_;  // by handle
  std::map<Key, Read> waiting_;                        // by inode and token
  std::map<Key, Poll> polls_;                          // by inode and handle
  std::uint64_t growths_ = 0;
  std::uint64_t last_token_ = 0;
  std::uint64_t last_handle_;
  bool closed_ = false;
};

}  // namespace bridle::fuse
