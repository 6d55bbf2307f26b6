/* cairn_backend.h: what libcairn.so asks of a library that reaches device memory (libcairn_cuda.so). Programs have no use for it.
 *
 * libcairn.so opens such a library when a member registers memory of its kind, and not before; so a node without a driver never needs one.
 *
 * A backend reaches all devices of its kind in the process. Which of them an address belongs to, it asks the driver. Of each device that it meets it
 * holds a *side stream*, on which all its copies run, and knows the *application's stream*: what the program has queued there up to
 * order() is done before any copy that is queued later begins. Copies of one device are done in the order in which they were queued. A *mark* is a
 * point in that order, on all devices at once.
 *
 * Threads: every function may be called by any thread at any time, of one mark by one at a time. Only wait() blocks for longer than the driver's
 * calls do.
 *
 * Errors: 0, or -1 with one line in the calling thread's last_error(). After an error of copy() or record(), what was queued before may still run:
 * wait_all().
 */
#ifndef CAIRN_CAIRN_BACKEND_H_
#define CAIRN_CAIRN_BACKEND_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `height` rows of `width` bytes; pitches are the bytes from one row to the next, of any size and sign. */
typedef struct cairn_copy_v1 {
  void* host;
  uint64_t device; /* an address */
  size_t width, height;
  int64_t host_pitch, device_pitch;
} cairn_copy_v1;

typedef struct cairn_mark_v1 cairn_mark_v1;

typedef struct cairn_backend_v1 {
  int version; /* 1 */

  /* The text of the last error in this thread. Valid until the thread's next call. */
  const char* (*last_error)(void);

  /* Loads the driver. Once, before everything else; -1 where there is none that will do. */
  int (*open)(void);
  /* Whether the address is one of a device. */
  int (*check)(uint64_t device_address);
  /* The application's stream on a device (by number), from the next order() on. NULL, as in the beginning: the legacy default stream. */
  int (*set_stream)(int device, void* stream);

  /* Registers host memory, so that copies of it need no help of the processor. It may be copied from and to in any case. */
  int (*pin)(void* host, size_t bytes);
  void (*unpin)(void* host);

  void (*order)(void);
  int (*copy_out)(const cairn_copy_v1* copy); /* queues: from the device to the host */
  int (*copy_in)(const cairn_copy_v1* copy);  /* queues: from the host to the device */

  cairn_mark_v1* (*make_mark)(void); /* NULL: no memory */
  void (*free_mark)(cairn_mark_v1* mark);
  int (*record)(cairn_mark_v1* mark); /* here: after what is queued, before what will be */
  int (*wait)(cairn_mark_v1* mark);   /* until all is done that was queued before it was recorded last */
  int (*wait_all)(void);
} cairn_backend_v1;

/* The one function that a backend shows. NULL: it knows no such version. */
#define CAIRN_BACKEND_GET "cairn_backend_get"
typedef const cairn_backend_v1* cairn_backend_get_fn(int version);

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_CAIRN_BACKEND_H_ */
