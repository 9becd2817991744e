// What the kernel itself needs: posix-spawn (start|exit) COUNT PROGRAM. Prints the milliseconds of each round as one JSON
// array. start: until posix_spawn() returned. exit: from the time that PROGRAM printed until waitpid() returned.
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int kWarmUp = 5;

static int64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void Check(int failed, const char* what) {
  if (!failed) return;
  perror(what);
  exit(1);
}

static int64_t Round(int exit_mode, char* program) {
  int out[2];
  Check(pipe(out) != 0, "pipe");
  posix_spawn_file_actions_t actions;
  Check(posix_spawn_file_actions_init(&actions) != 0, "posix_spawn_file_actions_init");
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_addclose(&actions, out[0]);
  posix_spawn_file_actions_addclose(&actions, out[1]);
  char* argv[] = {program, NULL};
  char* env[] = {NULL};
  pid_t pid = 0;

  const int64_t before = Now();
  const int failure = posix_spawn(&pid, program, &actions, NULL, argv, env);
  const int64_t spawned = Now();
  Check(failure != 0, "posix_spawn");
  Check(waitpid(pid, NULL, 0) != pid, "waitpid");
  const int64_t reported = Now();

  close(out[1]);
  char text[32] = "";
  if (exit_mode) Check(read(out[0], text, sizeof text - 1) <= 0, "read");
  close(out[0]);
  posix_spawn_file_actions_destroy(&actions);
  return exit_mode ? reported - atoll(text) : spawned - before;
}

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  const int exit_mode = strcmp(argv[1], "exit") == 0;
  const int count = atoi(argv[2]);
  for (int i = 0; i < kWarmUp; i++) Round(exit_mode, argv[3]);
  for (int i = 0; i < count; i++) printf("%s%.6f", i == 0 ? "[" : ",", (double)Round(exit_mode, argv[3]) / 1e6);
  puts("]");
  return 0;
}
