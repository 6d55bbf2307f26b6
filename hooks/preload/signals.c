/* How the program's view is kept.
 *
 * A watch holds the program's action for one signal, in the form in which the kernel would give it back. The kernel holds either that action
 * itself, or Cairn's handler with the program's mask and flags (Install()). The handler reads the view on any thread at any moment: a writer
 * fills the slot that is not in use and then moves `generation` on; a reader copies and looks whether it moved.
 *
 * Writers take turns by a lock, with all signals blocked, so that a handler never waits for its own thread. The lock holds its owner's pid:
 * a child that was forked while another thread held it takes it over.
 *
 * A child of vfork shares this memory, yet has dispositions of its own. What it sets until exec goes to the kernel alone, and what its parent
 * delivers is left to that. It is told by its pid, which a child of fork() renews (AfterFork).
 */
#include "hooks/preload/signals.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "hooks/preload/host.h"
#include "hooks/preload/shield.h"

typedef struct Watch {
  _Atomic int signo; /* 0 = not in use */
  _Atomic uint64_t
      pending; /* come to the member and not taken: pid << 32 | from Slurm << 16 | signal; 0 = none */
  atomic_int to_deliver; /* the next signal, whoever sent it, is acted on: cairn_signals_deliver() */
  atomic_uint generation;
  struct sigaction slots[2];
} Watch;

enum { kTerm, kInterrupt, kExtra, kWatches };

static Watch watches[kWatches];
static _Atomic pid_t self_pid;
static _Atomic pid_t writer_pid; /* the writers' lock; 0 = free */
static int stepd_pid = -1;       /* constant after start */

/* Membership. A handler that has seen member_pid is counted in `waking` until it is done with wake_fd. */
static _Atomic pid_t member_pid; /* 0 = none */
static _Atomic int wake_fd = -1;
static atomic_int waking;

static void OnSignal(int signo, siginfo_t* info, void* context);

/* ---- the view ---- */

static Watch* Find(int signo) {
  for (int i = 0; i < kWatches; ++i) {
    if (signo != 0 && atomic_load(&watches[i].signo) == signo) return &watches[i];
  }
  return NULL;
}

static struct sigaction View(Watch* watch) {
  struct sigaction view;
  unsigned generation;
  do {
    generation = atomic_load(&watch->generation);
    view = watch->slots[generation & 1];
    atomic_thread_fence(memory_order_acquire);
  } while (atomic_load(&watch->generation) != generation);
  return view;
}

static void Publish(Watch* watch, const struct sigaction* view) {
  const unsigned generation = atomic_load(&watch->generation);
  watch->slots[(generation + 1) & 1] = *view;
  atomic_store(&watch->generation, generation + 1);
}

static void Lock(sigset_t* mask) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, mask);
  const pid_t self = getpid();
  for (;;) {
    pid_t owner = 0;
    if (atomic_compare_exchange_strong(&writer_pid, &owner, self)) return;
    if (owner != self && atomic_compare_exchange_strong(&writer_pid, &owner, self)) return;
    sched_yield();
  }
}

static void Unlock(const sigset_t* mask) {
  atomic_store(&writer_pid, 0);
  sigprocmask(SIG_SETMASK, mask, NULL);
}

static int IsSelf(void) { return atomic_load(&self_pid) == getpid(); }

static int IsMember(void) { return atomic_load(&member_pid) == getpid(); }

static int IsHandler(const struct sigaction* action) {
  return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

enum { kOurFlags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | (int)SA_RESETHAND };

/* Gives the kernel what belongs there now: Cairn's handler where somebody has to see the signal, else the program's action, so that an
 * ignored signal stays ignored over exec. (An ignored SIGINT is left alone in a member, too: nothing ends by it.) Cairn's handler takes the program's mask and flags; where the program has no handler, a system
 * call is restarted and a small stack is spared. */
static int Install(Watch* watch) {
  const int signo = atomic_load(&watch->signo);
  struct sigaction action = View(watch);
  const int may_be_ignored = watch != &watches[kInterrupt] || action.sa_handler != SIG_IGN;
  if ((IsMember() && may_be_ignored) || (signo == SIGTERM && action.sa_handler != SIG_IGN)) {
    action.sa_flags &= ~(int)SA_RESETHAND;
    if (!IsHandler(&action)) action.sa_flags |= SA_RESTART | SA_ONSTACK;
    action.sa_flags |= SA_SIGINFO;
    action.sa_sigaction = OnSignal;
  } else {
    atomic_store(&watch->to_deliver, 0); /* what is under way comes to no handler of ours */
  }
  return cairn_host_sigaction(signo, &action, NULL);
}

int cairn_signals_watched(int signo) { return Find(signo) != NULL; }

int cairn_signals_set(int signo, const struct sigaction* action, struct sigaction* old) {
  Watch* watch = Find(signo);
  struct sigaction before;
  if (!IsSelf()) {
    if (cairn_host_sigaction(signo, action, &before) != 0) return -1;
    if (old != NULL) *old = before.sa_sigaction == OnSignal ? View(watch) : before;
    return 0;
  }
  sigset_t mask;
  Lock(&mask);
  int rc = cairn_host_sigaction(signo, NULL, &before);
  if (before.sa_sigaction == OnSignal) before = View(watch);
  if (rc == 0 && action != NULL) {
    struct sigaction view = *action;
    Publish(watch, &view);
    rc = Install(watch);
    struct sigaction now; /* with what libc and kernel make of mask and flags */
    if (rc == 0 && cairn_host_sigaction(signo, NULL, &now) == 0) {
      now.sa_handler = view.sa_handler;
      now.sa_flags = (view.sa_flags & kOurFlags) | (now.sa_flags & ~kOurFlags);
      view = now;
    }
    Publish(watch, rc == 0 ? &view : &before);
  }
  Unlock(&mask);
  if (rc == 0 && old != NULL) *old = before;
  return rc;
}

/* ---- the handler ---- */

static void ActDefault(Watch* watch, int signo) {
  const struct sigaction action = {.sa_handler = SIG_DFL};
  sigset_t only, mask;
  sigemptyset(&only);
  sigaddset(&only, signo);
  cairn_host_sigaction(signo, &action, NULL);
  raise(signo);
  sigprocmask(SIG_UNBLOCK, &only, &mask);
  /* Still here: the default is to ignore it or to stop, or this is the first process of a pid namespace. */
  sigprocmask(SIG_SETMASK, &mask, NULL);
  Install(watch);
}

/* What the signal would have done without Cairn. */
static void Act(Watch* watch, int signo, siginfo_t* info, void* context) {
  struct sigaction action = View(watch);
  if (action.sa_handler == SIG_IGN) return;
  if (action.sa_handler == SIG_DFL) {
    ActDefault(watch, signo);
    return;
  }
  if ((action.sa_flags & (int)SA_RESETHAND) != 0 && IsSelf()) {
    sigset_t mask;
    Lock(&mask);
    struct sigaction reset = View(watch);
    reset.sa_handler = SIG_DFL;
    Publish(watch, &reset);
    Install(watch);
    Unlock(&mask);
  }
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signo, info, context);
  } else {
    action.sa_handler(signo);
  }
}

/* Wakes the member; 0 in a process that is none. */
static int Wake(Watch* watch, int signo, int from_slurm, pid_t sender) {
  if (watch == NULL || !IsMember()) return 0;
  atomic_fetch_add(&waking, 1);
  const int woken = IsMember(); /* again: from here on leave() waits for us */
  if (woken) {
    const uint64_t one = 1;
    atomic_store(&watch->pending,
                 (uint64_t)(uint32_t)sender << 32 | (uint64_t)from_slurm << 16 | (uint64_t)signo);
    const ssize_t written = write(atomic_load(&wake_fd), &one, sizeof one);
    (void)written; /* where the eventfd is full it has been written to: the member wakes */
  }
  atomic_fetch_sub(&waking, 1);
  return woken;
}

static void OnSignal(int signo, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  Watch* watch = Find(signo);
  const int has_sender = info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL;
  const pid_t sender = has_sender ? info->si_pid : 0;
  const int from_slurm = info->si_code == SI_USER && (sender == 0 || sender == stepd_pid);
  const int delivered = sender == getpid() && info->si_code == SI_QUEUE && info->si_ptr == watches;
  const int to_deliver = watch != NULL && IsSelf() && atomic_exchange(&watch->to_deliver, 0);
  int held_back = delivered && !to_deliver; /* a signal that came just before it has been acted on instead */
  if (sender != getpid() && !to_deliver) {
    held_back =
        Wake(watch, signo, from_slurm, sender) || (from_slurm && signo == SIGTERM && cairn_shield_hide());
  }
  errno = saved_errno;
  if (!held_back && watch != NULL) Act(watch, signo, info, context);
}

/* ---- start and membership ---- */

static void StartWatch(Watch* watch, int signo) {
  struct sigaction action;
  cairn_host_sigaction(signo, NULL, &action);
  if (action.sa_sigaction == OnSignal) action = View(watch);
  Publish(watch, &action);
  atomic_store(&watch->signo, signo);
}

static void InstallAll(void) {
  for (int i = 0; i < kWatches; ++i) {
    if (atomic_load(&watches[i].signo) != 0) Install(&watches[i]);
  }
}

static void AfterFork(void) {
  const int was_member = atomic_load(&member_pid) != 0;
  atomic_store(&self_pid, getpid());
  atomic_store(&member_pid, 0);
  atomic_store(&waking, 0); /* it counted the parent's threads */
  for (int i = 0; i < kWatches; ++i) atomic_store(&watches[i].to_deliver, 0);
  if (!was_member) return;
  cairn_shield_forget();
  InstallAll();
}

void cairn_signals_start(int stepd) {
  stepd_pid = stepd;
  atomic_store(&self_pid, getpid());
  cairn_host_resolve(); /* dlsym() is not for a handler */
  pthread_atfork(NULL, NULL, AfterFork);
  StartWatch(&watches[kTerm], SIGTERM);
  Install(&watches[kTerm]);
}

int cairn_signals_is_member(void) { return IsMember(); }

int cairn_signals_become_member(int event_fd, int extra_signal) {
  if (IsMember()) {
    errno = EALREADY;
    return -1;
  }
  struct sigaction action;
  if (extra_signal == SIGTERM || extra_signal == SIGKILL || extra_signal == SIGSTOP ||
      (extra_signal != 0 && cairn_host_sigaction(extra_signal, NULL, &action) != 0)) {
    errno = EINVAL;
    return -1;
  }
  sigset_t mask;
  Lock(&mask);
  if (extra_signal != SIGINT) StartWatch(&watches[kInterrupt], SIGINT);
  if (extra_signal != 0) StartWatch(&watches[kExtra], extra_signal);
  atomic_store(&wake_fd, event_fd);
  for (int i = 0; i < kWatches; ++i) atomic_store(&watches[i].pending, 0);
  atomic_store(&member_pid, getpid());
  InstallAll();
  Unlock(&mask);
  return 0;
}

int cairn_signals_take(int* signo, int* from_slurm, int* sender_pid) {
  for (int i = 0; IsMember() && i < kWatches; ++i) {
    const uint64_t taken = atomic_exchange(&watches[i].pending, 0);
    if (taken == 0) continue;
    *signo = (int)(taken & 0xffff);
    *from_slurm = (int)(taken >> 16 & 1);
    *sender_pid = (int)(taken >> 32);
    return 1;
  }
  return 0;
}

/* A signal that is pending already swallows ours. So the handler acts on the first one that comes, whichever it is, and on that alone: a launcher
 * between Slurm and a rank passes its own SIGTERM on at the very moment at which the rank delivers one to itself. */
int cairn_signals_deliver(int signo) {
  Watch* watch = Find(signo);
  struct sigaction now;
  const int is_ours =
      watch != NULL && cairn_host_sigaction(signo, NULL, &now) == 0 && now.sa_sigaction == OnSignal;
  if (is_ours) atomic_store(&watch->to_deliver, 1);
  const int rc = sigqueue(getpid(), signo, (union sigval){.sival_ptr = watches});
  if (rc != 0 && is_ours) atomic_store(&watch->to_deliver, 0); /* the next one is not ours to act on */
  return rc;
}

int cairn_signals_has_handler(int signo) {
  Watch* watch = Find(signo);
  if (watch == NULL) return 0;
  const struct sigaction view = View(watch);
  return IsHandler(&view);
}

void cairn_signals_leave(void) {
  if (!IsMember()) return;
  sigset_t mask;
  Lock(&mask);
  atomic_store(&member_pid, 0);
  InstallAll();
  Unlock(&mask);
  while (atomic_load(&waking) != 0) sched_yield();
}
