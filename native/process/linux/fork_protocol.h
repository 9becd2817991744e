#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>

/// Between the daemon and its fork server (native/supervisor/fork_server.cc), on a sequenced-packet socket: a request
/// carries the descriptors of one supervisor, a reply its process id. Replies come in the order of requests.
namespace bridle {

/// First argument of the program; another version of it refuses to serve.
constexpr const char* fork_protocol = "fork-1";

/// Where the fork server finds its socket.
constexpr int fork_socket_slot = 3;

/// Exit status of a program that does not speak this protocol.
constexpr int wrong_protocol_status = 64;

constexpr std::size_t lease_id_size = 32;

struct ForkRequest {
  std::array<char, lease_id_size> lease;
};

/// In this order: control channel, standard input, output and error of the child, gate of the child.
constexpr std::size_t fork_descriptors = 5;

struct ForkReply {
  /// The supervisor, or a negated errno.
  pid_t pid = 0;
};

}  // namespace bridle
