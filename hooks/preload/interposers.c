/* The interposed functions: one for each way in which libc sets a disposition. A signal that is not watched goes on to the next library
 * (RTLD_NEXT: libc, or another interposer). */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "hooks/preload/host.h"
#include "hooks/preload/signals.h"

typedef void (*Handler)(int);

enum HostId { kSigaction, kSignal, kSysvSignal, kSigset, kSigignore, kSiginterrupt, kHostFunctions };

static void* Host(enum HostId id) {
  static const char* const names[kHostFunctions] = {"sigaction", "signal",    "__sysv_signal",
                                                    "sigset",    "sigignore", "siginterrupt"};
  static _Atomic(void*) found[kHostFunctions];
  void* function = atomic_load(&found[id]);
  if (function == NULL) {
    function = dlsym(RTLD_NEXT, names[id]);
    atomic_store(&found[id], function);
  }
  return function;
}

int cairn_host_sigaction(int signo, const struct sigaction* action, struct sigaction* old) {
  int (*function)(int, const struct sigaction*, struct sigaction*);
  *(void**)&function = Host(kSigaction);
  return function(signo, action, old);
}

static Handler HostSignal(enum HostId id, int signo, Handler handler) {
  Handler (*function)(int, Handler);
  *(void**)&function = Host(id);
  return function(signo, handler);
}

void cairn_host_resolve(void) {
  for (enum HostId id = 0; id < kHostFunctions; ++id) Host(id);
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int sigaction(int signo, const struct sigaction* action, struct sigaction* old) {
  return cairn_signals_watched(signo) ? cairn_signals_set(signo, action, old)
                                      : cairn_host_sigaction(signo, action, old);
}

/* The signals for which siginterrupt() asked that later calls of signal() leave SA_RESTART out. */
static _Atomic uint64_t interrupting;

static uint64_t Bit(int signo) { return UINT64_C(1) << (signo - 1); }

/* signal() and its relatives differ in flags and mask. */
static Handler SetHandler(int signo, Handler handler, int flags, int masks_itself) {
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
  sigemptyset(&action.sa_mask);
  if (masks_itself) sigaddset(&action.sa_mask, signo);
  return sigaction(signo, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

EXPORT Handler signal(int signo, Handler handler) {
  if (!cairn_signals_watched(signo)) return HostSignal(kSignal, signo, handler);
  return SetHandler(signo, handler, (atomic_load(&interrupting) & Bit(signo)) != 0 ? 0 : SA_RESTART, 1);
}

EXPORT Handler __sysv_signal(int signo, Handler handler) {
  if (!cairn_signals_watched(signo)) return HostSignal(kSysvSignal, signo, handler);
  return SetHandler(signo, handler, (int)SA_RESETHAND | SA_NODEFER | SA_INTERRUPT, 0);
}

EXPORT Handler sigset(int signo, Handler handler) {
  if (!cairn_signals_watched(signo)) return HostSignal(kSigset, signo, handler);
  sigset_t only, mask;
  sigemptyset(&only);
  sigaddset(&only, signo);
  Handler old;
  if (handler == SIG_HOLD) {
    struct sigaction action;
    if (sigaction(signo, NULL, &action) != 0) return SIG_ERR;
    old = action.sa_handler;
    sigprocmask(SIG_BLOCK, &only, &mask);
  } else {
    old = SetHandler(signo, handler, 0, 0);
    if (old == SIG_ERR) return SIG_ERR;
    sigprocmask(SIG_UNBLOCK, &only, &mask);
  }
  return sigismember(&mask, signo) ? SIG_HOLD : old;
}

EXPORT int sigignore(int signo) {
  if (!cairn_signals_watched(signo)) {
    int (*function)(int);
    *(void**)&function = Host(kSigignore);
    return function(signo);
  }
  return SetHandler(signo, SIG_IGN, 0, 0) == SIG_ERR ? -1 : 0;
}

EXPORT int siginterrupt(int signo, int interrupts) {
  if (!cairn_signals_watched(signo)) {
    int (*function)(int, int);
    *(void**)&function = Host(kSiginterrupt);
    return function(signo, interrupts);
  }
  struct sigaction action;
  if (sigaction(signo, NULL, &action) != 0) return -1;
  if (interrupts) {
    atomic_fetch_or(&interrupting, Bit(signo));
    action.sa_flags &= ~SA_RESTART;
  } else {
    atomic_fetch_and(&interrupting, ~Bit(signo));
    action.sa_flags |= SA_RESTART;
  }
  return sigaction(signo, &action, NULL);
}

/* Other names that libc has for three of them. */
#define ALIAS(name) __attribute__((nothrow, leaf, alias(name)))
EXPORT int __sigaction(int, const struct sigaction*, struct sigaction*) ALIAS("sigaction");
EXPORT Handler bsd_signal(int, Handler) ALIAS("signal");
EXPORT Handler ssignal(int, Handler) ALIAS("signal");
EXPORT Handler sysv_signal(int, Handler) ALIAS("__sysv_signal");
