/* cairn_carrier.h: what libcairn.so asks of a library that carries bytes between the ranks of a restore (libcairn_mpi.so), so that these need
 * not go through sockets. Programs have no use for it.
 *
 * Everything that takes longer than a call is begun, gives a *ticket*, and is tested until it is over. Between two ranks, messages arrive in the
 * order in which they were begun, if receives are begun in that order too.
 *
 * Threads: all functions are called by the program's own thread while it is inside cairn_restore, so a program that may use MPI on one thread alone
 * stays within its rights. None waits for another rank.
 *
 * Errors: -1, with one line in last_error().
 */
#ifndef CAIRN_CAIRN_CARRIER_H_
#define CAIRN_CAIRN_CARRIER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairn_carrier_v1 {
  int version; /* 1 */

  /* The text of the last error. Valid until the next call. */
  const char* (*last_error)(void);
  /* For which MPI it was built: "Open MPI" or "MPICH"; whatever has the binary interface of one of them will do. */
  const char* family;

  /* Whether the process's MPI, which dlsym finds by `library` (NULL: in the process), will do for a session in which this member is `rank`
   * of `world_size`. Before everything else. `trusted`: the user vouches that no other thread of the program is in MPI meanwhile; else a level of
   * threads that would allow it is refused. */
  int (*open)(void* library, int rank, int world_size, int trusted);

  /* Begins, collective: a communicator of Cairn's own; a ticket. MPI holds all later collectives of the program against those who began it, so
   * either all ranks call it or none does. */
  int64_t (*connect)(void);
  /* Begin; a ticket. The memory is the library's until the ticket is over. A message may be shorter than the room for it, also empty. */
  int64_t (*send)(int to, const void* data, size_t bytes);
  int64_t (*receive)(int from, void* data, size_t room);

  /* 1: it is over, and the ticket is gone; *bytes of a receive are how many came. 0: not yet. */
  int (*test)(int64_t ticket, size_t* bytes);
  /* Gives up a receive, or connect. 0: nothing comes any more. -1: that cannot be; the memory stays the library's for good. */
  int (*drop)(int64_t ticket);

  /* Brings on what is over here and not yet there: MPI may keep a message back until it is called again. */
  void (*progress)(void);

  /* Frees the communicator. Collective: all ranks call it, with nothing under way, or none does. */
  void (*disconnect)(void);
} cairn_carrier_v1;

/* The one function that such a library shows. NULL: it knows no such version. */
#define CAIRN_CARRIER_GET "cairn_carrier_get"
typedef const cairn_carrier_v1* cairn_carrier_get_fn(int version);

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_CAIRN_CARRIER_H_ */
