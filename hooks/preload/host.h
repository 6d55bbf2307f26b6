/* The host: what lies under the interposed functions (interposers.c), and the dynamic linker. */
#ifndef CAIRN_HOOKS_PRELOAD_HOST_H_
#define CAIRN_HOOKS_PRELOAD_HOST_H_

#include <signal.h>

/* sigaction() of the next library. The first call of all resolves it. */
int cairn_host_sigaction(int signo, const struct sigaction* action, struct sigaction* old);

/* Resolves all interposed functions, so that no later call does. */
void cairn_host_resolve(void);

/* dlsym and its relatives are bound to their oldest version, since glibc 2.34 moved them and gave them a new one. On older hosts they lie in
 * libdl.so.2, which the shim therefore needs by name. */
#if defined(__x86_64__)
#define CAIRN_OLDEST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__) || defined(__powerpc64__)
#define CAIRN_OLDEST_GLIBC "GLIBC_2.17"
#else
#error "state the oldest symbol version of this architecture's glibc"
#endif

__asm__(".symver dlsym, dlsym@" CAIRN_OLDEST_GLIBC);
__asm__(".symver dlopen, dlopen@" CAIRN_OLDEST_GLIBC);
__asm__(".symver dlerror, dlerror@" CAIRN_OLDEST_GLIBC);

#endif /* CAIRN_HOOKS_PRELOAD_HOST_H_ */
