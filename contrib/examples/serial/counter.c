/* counter: the smallest program that survives. It adds up 1 … 600, one number each 100 ms. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "cairn/cairn.h"

#define CHECK(call)                                                  \
  if ((call) != CAIRN_OK) {                                          \
    fprintf(stderr, "counter: %s: %s\n", #call, cairn_last_error()); \
    return 1;                                                        \
  }

int main(void) {
  int64_t sum = 0;
  cairn_session* session;
  cairn_report report = {.struct_size = sizeof report};
  cairn_piece piece = {.data = &sum};
  cairn_array scalar = {sizeof scalar, CAIRN_I64, CAIRN_ORDER_C, 0, {0}, 1, &piece};

  CHECK(cairn_open(NULL, &session));
  CHECK(cairn_add_array(session, "sum", &scalar));
  CHECK(cairn_restore(session, &report));
  printf("counter: from %" PRId64 "\n", report.step + 1);
  fflush(stdout);
  for (int64_t i = report.step + 1; i <= 600; ++i) {
    sum += i;
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    CHECK(cairn_step(session, i));
  }
  printf("counter: the sum is %" PRId64 "\n", sum);
  cairn_finalize(&session); /* if the last save fails Cairn says so; our result is out */
  return 0;
}
