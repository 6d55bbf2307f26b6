/* What libcairn_preload.so offers to libcairn.so: how one process becomes a member, and what becomes of its SIGTERM.
 *
 * The runtime finds the table with dlsym(RTLD_DEFAULT, "cairn_shim_v1_get"), or else opens the library that lies beside it. In the second
 * case the program's own calls of sigaction() are not seen: what it installs after become_member() replaces Cairn's handler.
 *
 * Words. A process *under the token* has SLURM_CAIRN_TOKEN in its environment. A *member* called become_member() and not leave(). The
 * *watched* signals are SIGTERM in every process under the token, and a member's extra signal and SIGINT (unless the program ignores that). The *program's action* for a watched signal
 * is what it set with sigaction() or a relative, before or after becoming a member, and what it reads back; Cairn's handler lies over it.
 *
 * What a watched signal does:
 *   sent by the process to itself     the program's action, at once
 *   to a member                       is recorded and wakes event_fd, whoever sent it
 *   to any other process              if Slurm sent it while a member is at work on this node: the process goes on and is listed in the
 *                                     shield file, for forward(); else the program's action
 *
 * Limits. A process that is just being started (between exec and the shim's constructor) is not shielded. A signal that all threads block, to be
 * taken by sigwait() or signalfd(), never reaches a handler, Cairn's neither; where a delivered one is taken so, the next one that reaches the
 * handler is acted on in its place. A shielded
 * signal may end a sleep() or poll() early with EINTR. A member's child that is made by posix_spawn or vfork starts with the default action
 * where the member ignores the signal (a child made by fork() ignores it, as it should).
 *
 * Threads: every function may be called from any thread, not from a signal handler, and none blocks. Errors: -1 with errno set. A forked child is
 * no member, and where no member is, forward() fails with EPERM, and release_shield() and leave() do nothing.
 */
#ifndef CAIRN_HOOKS_PRELOAD_SHIM_H_
#define CAIRN_HOOKS_PRELOAD_SHIM_H_

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_shim_v1 {
  int version; /* 1 */

  /* Makes this process a member. event_fd: a non-blocking eventfd that is the caller's and stays open until leave() has returned; 1 is
   * added to it whenever a watched signal arrives. extra_signal: one more watched signal, or 0.
   * EALREADY: it is a member. EINVAL: the extra signal is SIGTERM or cannot be caught. When the shield file cannot be made or locked the
   * process is a member all the same, and the other processes of the step are not shielded: the function then returns 1 with errno set,
   * else 0. */
  int (*become_member)(int event_fd, int extra_signal);

  /* Takes a watched signal that has arrived at this member: its number, whether Slurm sent it, and who (0: from outside this process's pid
   * namespace). 1 when there was one, else 0. Call it until it returns 0: one wake-up may stand for both watched signals. Like pending
   * signals, several of one number count as one, and the last of them is told. */
  int (*take_signal)(int* signo, int* from_slurm, int* sender_pid);

  /* This member is at work no longer: it still takes signals, yet shields nobody. */
  void (*release_shield)(void);

  /* For a member that ends with the job. Sends signo to those of its ancestors that are listed in the shield file; calls release_shield(); and then,
   * unless another member of this node is at work (that one will do it), sends signo to each process that is left in the list and clears it.
   * Returns the number of processes that were sent to. */
  int (*forward)(int signo);

  /* Acts out a watched signal as the program would have without Cairn: its own handler (in a thread that does not block the signal, the main
   * thread for choice; a SA_SIGINFO handler reads SI_QUEUE with its own pid as the sender and a si_value that means nothing to it, or those of
   * whoever sent the signal at the same moment), or the
   * default action with its exit status, or nothing; once, also when such another one comes.
   * Returns 0; the action may still be to come when the calling thread blocks the signal. */
  int (*deliver)(int signo);

  /* 1 when the program has a handler of its own for a watched signal, else 0. */
  int (*has_handler)(int signo);

  /* Stops being a member and releases the shield: the program's actions are again all that happens here. */
  void (*leave)(void);
} cairn_shim_v1;

/* The table, valid for ever; NULL in a process that is not under the token. */
const cairn_shim_v1* cairn_shim_v1_get(void);

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_HOOKS_PRELOAD_SHIM_H_ */
