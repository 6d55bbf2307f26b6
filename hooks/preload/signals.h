/* Cairn's handler, and the program's own view of the signals under it. The rules are in shim.h. */
#ifndef CAIRN_HOOKS_PRELOAD_SIGNALS_H_
#define CAIRN_HOOKS_PRELOAD_SIGNALS_H_

#include <signal.h>

/* Begins to watch SIGTERM in this process; once, from the constructor. stepd: the pid that Slurm's signals come from, -1 = unknown. */
void cairn_signals_start(int stepd);

/* Whether the program's action for this signal is kept here, and sigaction() for such a one. */
int cairn_signals_watched(int signo);
int cairn_signals_set(int signo, const struct sigaction* action, struct sigaction* old);

/* The functions of the table cairn_shim_v1 that concern signals; see there. */
int cairn_signals_become_member(int event_fd, int extra_signal);
int cairn_signals_take(int* signo, int* from_slurm, int* sender_pid);
int cairn_signals_is_member(void);
int cairn_signals_deliver(int signo);
int cairn_signals_has_handler(int signo);
void cairn_signals_leave(void);

#endif /* CAIRN_HOOKS_PRELOAD_SIGNALS_H_ */
