// Prints the nanoseconds of CLOCK_MONOTONIC, which is the clock of process.hrtime, and ends at once.
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(void) {
  struct timespec now;
  char text[32];
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int length = snprintf(text, sizeof text, "%lld%09ld", (long long)now.tv_sec, now.tv_nsec);
  _exit(write(1, text, (size_t)length) == length ? 0 : 1);
}
