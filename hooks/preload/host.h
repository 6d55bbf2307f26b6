/* Included after the system's headers by every file that asks the dynamic linker: binds dlsym and its relatives to the oldest version, since
 * glibc 2.34 moved them and gave them a new one. On older hosts they lie in libdl.so.2, which the shim therefore needs by name. */
#ifndef CAIRN_HOOKS_PRELOAD_HOST_H_
#define CAIRN_HOOKS_PRELOAD_HOST_H_

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
