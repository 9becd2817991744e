#include "wait_readable.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "native/process/system_error.h"

namespace bridle::fuse {

bool wait_readable(int fd, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    const int found = poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (found >= 0) return found > 0;
    if (errno != EINTR) throw_errno("wait for a descriptor");
  }
}

}  // namespace bridle::fuse
