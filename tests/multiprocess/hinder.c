/* libcairn_hinder.so: hinders the program's own thread of a rank, and nobody else. Goes in LD_PRELOAD.
 *
 *   HINDER=deaf     it cannot bind a socket, so the rank cannot take bulk data
 *   HINDER=stuck N  on rank N a read of more than 1 MiB from a file never comes back
 */
#define _GNU_SOURCE
#pragma GCC diagnostic ignored "-Wpedantic" /* dlsym gives functions as objects */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const char* Hindrance(void) {
  const char* hinder = getenv("HINDER");
  return hinder != NULL && getenv("SLURM_PROCID") != NULL && gettid() == getpid() ? hinder : "";
}

EXPORT int bind(int fd, const struct sockaddr* address, socklen_t size) {
  if (strcmp(Hindrance(), "deaf") == 0) {
    errno = EADDRNOTAVAIL;
    return -1;
  }
  int (*next)(int, const struct sockaddr*, socklen_t) = dlsym(RTLD_NEXT, "bind");
  return next(fd, address, size);
}

EXPORT ssize_t pread(int fd, void* buffer, size_t bytes, off_t offset) {
  const char* hinder = Hindrance();
  if (strncmp(hinder, "stuck ", 6) == 0 && strcmp(hinder + 6, getenv("SLURM_PROCID")) == 0 &&
      bytes > 1 << 20) {
    for (;;) pause();
  }
  ssize_t (*next)(int, void*, size_t, off_t) = dlsym(RTLD_NEXT, "pread");
  return next(fd, buffer, bytes, offset);
}
