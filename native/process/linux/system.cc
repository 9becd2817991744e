#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "../process.h"
#include "../system_error.h"
#include "unique_fd.h"

namespace bridle {

PeerCredentials peer_credentials(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) throw_errno("getsockopt SO_PEERCRED");
  return {credentials.uid, credentials.gid, credentials.pid};
}

bool notify_systemd(const std::string& message) {
  const char* variable = std::getenv("NOTIFY_SOCKET");
  if (variable == nullptr || *variable == '\0') return false;
  const std::string path = variable;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if ((path.front() != '/' && path.front() != '@') || path.size() >= sizeof(address.sun_path)) {
    throw SystemError(EINVAL, "NOTIFY_SOCKET is neither a path nor an abstract name");
  }
  std::copy(path.begin(), path.end(), std::begin(address.sun_path));
  if (path.front() == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) throw_errno("socket");
  // An abstract name is exactly as long as given; a path may end without its NUL.
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  // Never wait for a manager that does not read: readiness and watchdog messages come from the event loop.
  const ssize_t sent = sendto(fd.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                              reinterpret_cast<const sockaddr*>(&address), length);
  if (sent < 0) throw_errno("send to NOTIFY_SOCKET");
  return true;
}

bool try_lock(int fd) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  throw_errno("fcntl F_OFD_SETLK");
}

}  // namespace bridle
