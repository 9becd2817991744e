// process-tree COUNT: COUNT sleeping processes with this one, of every kind that a run leaves: children, grandchildren,
// sessions of their own, orphans of a double fork. Prints `ready` once all sleep. TERM ends each.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int alive[2];

static void Check(int failed, const char* what) {
  if (!failed) return;
  perror(what);
  exit(1);
}

static pid_t Fork(void) {
  const pid_t pid = fork();
  Check(pid < 0, "fork");
  return pid;
}

static void Sleep(void) {
  Check(write(alive[1], "", 1) != 1, "write");
  for (;;) pause();
}

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  const int count = atoi(argv[1]);
  Check(pipe(alive) != 0, "pipe");
  for (int made = 1; made < count;) {
    const int kind = made % 4;
    // A parent with its child counts twice.
    const int nested = kind == 1 && made + 2 <= count;
    const pid_t child = Fork();
    if (child == 0) {
      if (nested && Fork() == 0) Sleep();
      if (kind == 2) setsid();
      if (kind == 3 && Fork() != 0) _exit(0);
      Sleep();
    }
    if (kind == 3) Check(waitpid(child, NULL, 0) != child, "waitpid");
    made += nested ? 2 : 1;
  }
  for (int seen = 1; seen < count; seen++) {
    char byte;
    Check(read(alive[0], &byte, 1) != 1, "read");
  }
  Check(write(1, "ready\n", 6) != 6, "write");
  for (;;) pause();
}
