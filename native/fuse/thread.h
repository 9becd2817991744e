#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace bridle::fuse {

/**
 * Starts a thread that takes no signals: they belong to the threads of Node.
 * @param name at most 15 bytes, shown by ps -L
 */
template <typename Body>
std::thread start_thread(const char* name, Body&& body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restore {
    sigset_t* mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, mask, nullptr); }
  } const restore{&before};
  std::thread thread(std::forward<Body>(body));
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace bridle::fuse
