#pragma once

#include <unistd.h>

#include <memory>
#include <utility>

namespace bridle::fuse {

/** Owns a file descriptor. */
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  /** Gives the descriptor away: the caller closes it. */
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/** A descriptor that stays open while any request works on it. */
using SharedDescriptor = std::shared_ptr<const Descriptor>;

}  // namespace bridle::fuse
