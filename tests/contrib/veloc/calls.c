/* What the calls of veloc.h say, in a process without MPI_Init. Prints one line a call. */
#include <stdio.h>
#include <stdlib.h>

#include "veloc.h"

static int a[4] = {1, 2, 3, 4}, b[2] = {5, 6};

static void Show(const char* what, int value) { printf("%s %d\n", what, value); }

int main(int argc, char** argv) {
  int some[] = {7};
  char path[VELOC_MAX_NAME];
  int* moved = malloc(sizeof a);
  (void)argc;
  Show("early", VELOC_Mem_protect(7, a, 4, sizeof *a));
  Show("init", VELOC_Init_single(3, "calls.cfg"));
  if (argv[1][0] == 'n') Show("nothing", VELOC_Restart_test("calls", 0)); /* stops */
  VELOC_Mem_protect(7, a, 4, sizeof *a);
  VELOC_Mem_protect(8, b, 2, sizeof *b);
  VELOC_Mem_protect(9, b, 2, sizeof *b);
  Show("unprotect", VELOC_Mem_unprotect(9));
  const int version = VELOC_Restart_test("calls", 0);
  Show("test", version);
  if (version > 0) {
    a[0] = b[0] = -1;
    Show("older", VELOC_Restart_test("calls", version));
    Show("other", VELOC_Restart("calls", version - 1));
    Show("begin", VELOC_Restart_begin("calls", version));
    Show("some", VELOC_Recover_selective(VELOC_RECOVER_SOME, some, 1));
    printf("is %d %d\n", a[0], b[0]);
    b[1] = -1;
    Show("rest", VELOC_Recover_selective(VELOC_RECOVER_REST, some, 1));
    printf("is %d %d %d\n", a[0], b[0], b[1]);
    Show("end", VELOC_Restart_end(1));
    return 0;
  }
  Show("begin", VELOC_Checkpoint_begin("calls", 4));
  Show("route", VELOC_Route_file("a.bin", path));
  Show("end", VELOC_Checkpoint_end(0));
  Show("late", VELOC_Mem_protect(9, b, 2, sizeof *b));
  Show("grown", VELOC_Mem_protect(7, a, 3, sizeof *a));
  moved[0] = 10;
  Show("moved", VELOC_Mem_protect(7, moved, 4, sizeof *moved));
  Show("gone", VELOC_Mem_unprotect(8));
  b[0] = b[1] = 0;
  Show("checkpoint", VELOC_Checkpoint("calls", 5));
  Show("name", VELOC_Checkpoint("another", 6));
  Show("wait", VELOC_Checkpoint_wait());
  Show("finalize", VELOC_Finalize(0));
  free(moved);
  return 0;
}
