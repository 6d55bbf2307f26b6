/* A slow file system, by LD_PRELOAD, so that tests can do something in the middle of a save: each mkdir, fsync and rename comes SLOW_IO_MS
 * milliseconds late, and no manifest gets its name as long as the file SLOW_IO_HOLD exists. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void Sleep(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

static void* Late(const char* name) {
  const char* ms = getenv("SLOW_IO_MS");
  if (ms) Sleep(atol(ms));
  return dlsym(RTLD_NEXT, name);
}

int mkdir(const char* path, mode_t mode) { return ((int (*)(const char*, mode_t))Late("mkdir"))(path, mode); }
int fsync(int fd) { return ((int (*)(int))Late("fsync"))(fd); }
int rename(const char* from, const char* to) {
  static const char kCommits[] = "/manifest.json";
  const char* hold = getenv("SLOW_IO_HOLD");
  int (*real)(const char*, const char*) = (int (*)(const char*, const char*))Late("rename");
  const size_t length = strlen(to), tail = sizeof kCommits - 1;
  if (length > tail && strcmp(to + length - tail, kCommits) == 0) {
    while (hold && access(hold, F_OK) == 0) Sleep(10);
  }
  return real(from, to);
}
