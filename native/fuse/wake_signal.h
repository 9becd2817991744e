#pragma once

#include <thread>

namespace bridle::fuse {

/**
 * A real-time signal that does nothing but make a blocking read(2) of one thread return. Waiting in read(2) costs one
 * system call a request less than waiting in epoll, which is a third of a short request; the price is this signal.
 */
class WakeSignal {
 public:
  /// Chooses the signal, the highest that nobody in this process uses, once. @throws SystemError
  static void claim() { number(); }
  /// Lets the calling thread be woken.
  static void accept();
  /// Wakes a thread that has not been joined. A wake-up may come between a check and the read: repeat it.
  static void send(std::thread& thread);

 private:
  static int number();
};

}  // namespace bridle::fuse
