/* The shield file of one step on one node: who is at work, and whose SIGTERM was held back. The protocol is on top of shield.c. */
#ifndef CAIRN_HOOKS_PRELOAD_SHIELD_H_
#define CAIRN_HOOKS_PRELOAD_SHIELD_H_

/* Names the file; once, before everything else. A key without a step, or a node's name with a slash, leaves the step without a shield. */
void cairn_shield_configure(const char* token, const char* key, const char* node);

/* A member begins to work: makes folder and file where they are missing. 0, or -1 with errno. */
int cairn_shield_take(void);

/* It ends, and the last to end removes the file; also right when none was taken. */
void cairn_shield_drop(void);

/* In a child after fork: closes the descriptor that came along. The lock stays with the parent. */
void cairn_shield_forget(void);

/* From the handler of a process that is no member: 1 when a member is at work and this process is listed, else 0. Async-signal-safe. */
int cairn_shield_hide(void);

/* Step 4 of the protocol, to the ancestors of a member that still holds its lock, and to all: the number of processes that signo was sent to. */
int cairn_shield_forward_up(int signo);
int cairn_shield_forward(int signo);

#endif /* CAIRN_HOOKS_PRELOAD_SHIELD_H_ */
