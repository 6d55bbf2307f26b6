/* Preloaded into the ranks: everything that arrives over TCP arrives CAIRN_TEST_RECV_MS late. A message of the agreement and its answer thus
 * take twice that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

ssize_t recv(int fd, void* data, size_t size, int flags) {
  static ssize_t (*real)(int, void*, size_t, int);
  int domain = AF_UNIX;
  socklen_t length = sizeof domain;
  const char* ms = getenv("CAIRN_TEST_RECV_MS");
  if (!real) real = (ssize_t(*)(int, void*, size_t, int))dlsym(RTLD_NEXT, "recv");
  ssize_t got = real(fd, data, size, flags);
  if (got > 0 && ms && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain != AF_UNIX)
    nanosleep(&(struct timespec){0, atol(ms) * 1000000}, NULL);
  return got;
}
