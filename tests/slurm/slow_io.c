/* A slow file system, by LD_PRELOAD: each mkdir, fsync and rename comes SLOW_IO_MS milliseconds late, so that the phases of a save last long
 * enough for tests to do something in the middle of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void* Late(const char* name) {
  const char* text = getenv("SLOW_IO_MS");
  const long ms = text ? atol(text) : 0;
  nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
  return dlsym(RTLD_NEXT, name);
}

int mkdir(const char* path, mode_t mode) { return ((int (*)(const char*, mode_t))Late("mkdir"))(path, mode); }
int fsync(int fd) { return ((int (*)(int))Late("fsync"))(fd); }
int rename(const char* from, const char* to) {
  return ((int (*)(const char*, const char*))Late("rename"))(from, to);
}
