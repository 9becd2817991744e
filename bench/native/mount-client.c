// mount-client OPERATION DIRECTORY SECONDS CLIENTS: does one operation again and again in so many processes that start
// together, on the tree that bench/mount/tree.mjs describes. Prints a JSON object: operations a second of all
// processes, and microseconds of one operation; for `stale` the versions seen with the time of each.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMaxClients = 64, kMaxSamples = 1 << 19, kFiles = 1000, kRequestBytes = 512, kReadBytes = 128 << 10 };
static const int64_t kSecond = 1000000000;
static const useconds_t kStalePauseUs = 50;

// In memory that all processes share.
struct Client {
  long count;
  int64_t elapsed;
  uint32_t samples[kMaxSamples];  // nanoseconds
};

static const char* directory;
static int client_number;
static char buffer[kReadBytes];

static int64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * kSecond + now.tv_nsec;
}

static void Check(int failed, const char* what) {
  if (!failed) return;
  perror(what);
  exit(1);
}

static const char* Path(const char* name) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

static const char* File(long n) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/d/f%04ld", directory, n % kFiles);
  return path;
}

static void Missing(long n) {
  (void)n;
  struct stat attributes;
  Check(stat(Path("d/missing"), &attributes) == 0 || errno != ENOENT, "missing");
}

static void Stat(long n) {
  struct stat attributes;
  Check(stat(File(n), &attributes) != 0, "stat");
}

static void Read4k(long n) {
  const int fd = open(File(n), O_RDONLY);
  Check(fd < 0, "open");
  Check(read(fd, buffer, 4096) != 4096, "read");
  close(fd);
}

static void List(const char* path, int attributes_too, int expected) {
  DIR* const dir = opendir(path);
  Check(dir == NULL, "opendir");
  int count = 0;
  for (struct dirent* entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
    struct stat attributes;
    if (entry->d_name[0] == '.') continue;
    count++;
    if (!attributes_too) continue;
    Check(fstatat(dirfd(dir), entry->d_name, &attributes, AT_SYMLINK_NOFOLLOW) != 0, "fstatat");
  }
  closedir(dir);
  errno = EPROTO;
  Check(count != expected, "entries");
}

static void List1000(long n) {
  (void)n;
  List(Path("d"), 1, kFiles);
}

static void ReadAll(long n) {
  (void)n;
  const int fd = open(Path("big"), O_RDONLY);
  Check(fd < 0, "open");
  ssize_t length = 0;
  while ((length = read(fd, buffer, sizeof buffer)) > 0) continue;
  Check(length < 0, "read");
  close(fd);
}

static void Sync(int fd) {
  Check(fd < 0, "open");
  Check(fsync(fd) != 0, "fsync");
  close(fd);
}

static void HandIn(long n, int durable) {
  char from[PATH_MAX];
  char to[PATH_MAX];
  snprintf(from, sizeof from, "%s/inbox/.%d-%d-%ld.tmp", directory, getpid(), client_number, n);
  snprintf(to, sizeof to, "%s/inbox/%d-%d-%ld.req.json", directory, getpid(), client_number, n);
  const int fd = open(from, O_WRONLY | O_CREAT | O_EXCL, 0600);
  Check(fd < 0, "create");
  Check(write(fd, buffer, kRequestBytes) != kRequestBytes, "write");
  if (durable) {
    Sync(fd);
  } else {
    close(fd);
  }
  Check(rename(from, to) != 0, "rename");
  if (durable) Sync(open(Path("inbox"), O_RDONLY | O_DIRECTORY));
}

static void Volatile(long n) { HandIn(n, 0); }

static void Durable(long n) { HandIn(n, 1); }

// What somebody does who looks around: in turn, so that each is a sample of its own.
static void LookAround(long n) {
  struct stat attributes;
  if (n % 3 == 0) Check(stat(Path("latest"), &attributes) != 0, "stat");
  if (n % 3 == 1) List(directory, 0, 4);
  if (n % 3 == 2) Read4k(n);
}

static const struct Operation {
  const char* name;
  void (*once)(long n);
} operations[] = {
    {"enoent", Missing}, {"stat", Stat},         {"read4k", Read4k},   {"list1000", List1000},
    {"seqread", ReadAll}, {"handoff", Volatile}, {"durable", Durable}, {"look", LookAround},
};

static void Run(void (*once)(long), struct Client* client, int64_t duration) {
  const int64_t start = Now();
  int64_t last = start;
  long n = 0;
  while (last < start + duration) {
    // Clients work on different files most of the time.
    once(n + (long)client_number * (kFiles / 4));
    const int64_t now = Now();
    if (n < kMaxSamples) client->samples[n] = (uint32_t)(now - last < UINT32_MAX ? now - last : UINT32_MAX);
    last = now;
    n++;
  }
  client->count = n;
  client->elapsed = last - start;
}

static int Ascending(const void* left, const void* right) {
  const uint32_t a = *(const uint32_t*)left;
  const uint32_t b = *(const uint32_t*)right;
  return (a > b) - (a < b);
}

static void Report(const struct Client* clients, int count) {
  double rate = 0;
  size_t total = 0;
  uint32_t* const all = malloc(sizeof *all * kMaxSamples * (size_t)count);
  Check(all == NULL, "malloc");
  for (int i = 0; i < count; i++) {
    rate += (double)clients[i].count * (double)kSecond / (double)clients[i].elapsed;
    const size_t samples = (size_t)(clients[i].count < kMaxSamples ? clients[i].count : kMaxSamples);
    memcpy(all + total, clients[i].samples, samples * sizeof *all);
    total += samples;
  }
  qsort(all, total, sizeof *all, Ascending);
  printf("{\"rate\":%.3f,\"p50\":%.3f,\"p99\":%.3f,\"samples\":%zu}\n", rate, all[(total - 1) / 2] / 1e3,
         all[(total - 1) * 99 / 100] / 1e3, total);
}

static void Stale(int64_t duration) {
  const int64_t end = Now() + duration;
  const char* separator = "[";
  for (long seen = -1; Now() < end; usleep(kStalePauseUs)) {
    const int fd = open(Path("latest"), O_RDONLY);
    Check(fd < 0, "open");
    const ssize_t length = read(fd, buffer, 31);
    Check(length <= 0, "read");
    close(fd);
    buffer[length] = '\0';
    const long version = atol(buffer);
    if (version == seen) continue;
    seen = version;
    printf("%s[%ld,%lld]", separator, version, (long long)Now());
    separator = ",";
  }
  puts("]");
}

int main(int argc, char** argv) {
  if (argc != 5) return 64;
  directory = argv[2];
  const int64_t duration = (int64_t)(atof(argv[3]) * (double)kSecond);
  const int count = atoi(argv[4]);
  if (count < 1 || count > kMaxClients) return 64;
  memset(buffer, 'x', sizeof buffer);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (strcmp(argv[1], "stale") == 0) {
    Stale(duration);
    return 0;
  }
  void (*once)(long) = NULL;
  for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
    if (strcmp(argv[1], operations[i].name) == 0) once = operations[i].once;
  }
  if (once == NULL) return 64;

  struct Client* const clients =
      mmap(NULL, sizeof *clients * (size_t)count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Check(clients == MAP_FAILED, "mmap");
  int gate[2];
  Check(pipe(gate) != 0, "pipe");
  for (int i = 0; i < count; i++) {
    const pid_t child = fork();
    Check(child < 0, "fork");
    if (child > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    client_number = i;
    close(gate[1]);
    char byte;
    Check(read(gate[0], &byte, 1) != 0, "gate");
    Run(once, &clients[i], duration);
    exit(0);
  }
  close(gate[1]);
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed |= status;
  if (failed != 0) return 1;
  Report(clients, count);
  return 0;
}
