/* What the calls of veloc.h say, in a process without MPI_Init. Prints one line a call. What it does is its argument. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "veloc.h"

static int a[4] = {1, 2, 3, 4}, b[2] = {5, 6}, c[2] = {7, 8};

static void Show(const char* what, int value) { printf("%s %d\n", what, value); }

static void Save(void) {
  int some[] = {7};
  char path[VELOC_MAX_NAME];
  int* moved = malloc(sizeof a);
  Show("begin", VELOC_Checkpoint_begin("calls", 4));
  Show("route", VELOC_Route_file("a.bin", path));
  Show("some", VELOC_Checkpoint_selective(VELOC_CKPT_SOME, some, 1));
  Show("end", VELOC_Checkpoint_end(0));
  moved[0] = 10;
  Show("moved", VELOC_Mem_protect(7, moved, 4, sizeof *moved));
  b[0] = -1;
  Show("gone", VELOC_Mem_unprotect(8));
  Show("checkpoint", VELOC_Checkpoint("calls", 5));
  Show("name", VELOC_Checkpoint("another", 6));
  Show("wait", VELOC_Checkpoint_wait());
  Show("finished", VELOC_Checkpoint_finished());
  Show("newest", VELOC_Restart_test("calls", 0));
  Show("grown", VELOC_Mem_protect(7, moved, 3, sizeof *moved));
  Show("without", VELOC_Checkpoint("calls", 6));
  Show("finalize", VELOC_Finalize(0));
  free(moved);
}

static void Restart(int version) {
  int some[] = {7};
  a[0] = b[0] = c[0] = -1;
  Show("begin", VELOC_Restart_begin("calls", version));
  Show("size", VELOC_Recover_size(7));
  Show("some", VELOC_Recover_selective(VELOC_RECOVER_SOME, some, 1));
  printf("is %d %d %d\n", a[0], b[0], c[0]);
  b[1] = -1;
  Show("rest", VELOC_Recover_selective(VELOC_RECOVER_REST, some, 1));
  printf("is %d %d %d %d\n", a[0], b[0], b[1], c[0]);
  Show("end", VELOC_Restart_end(1));
}

int main(int argc, char** argv) {
  const char* what = argv[argc - 1];
  int* unmapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Show("early", VELOC_Mem_protect(7, a, 4, sizeof *a));
  Show("init", VELOC_Init_single(3, "calls.cfg"));
  if (strcmp(what, "nothing") == 0) Show("nothing", VELOC_Restart_test("calls", 0)); /* stops */
  VELOC_Mem_protect(9, b, 2, sizeof *b);
  VELOC_Mem_protect(10, b, 2, sizeof *b);
  Show("clear", VELOC_Mem_clear());
  VELOC_Mem_protect(7, a, 4, sizeof *a);
  VELOC_Mem_protect(8, b, 2, sizeof *b);
  VELOC_Mem_protect(9, NULL, 0, 1);
  VELOC_Mem_protect(10, b, 2, sizeof *b);
  Show("unprotect", VELOC_Mem_unprotect(10));
  if (strcmp(what, "more") == 0) VELOC_Mem_protect(11, c, 2, sizeof *c);
  if (strcmp(what, "freed") == 0) {
    VELOC_Mem_protect(7, unmapped, 4, sizeof *unmapped);
    Show("checkpoint", VELOC_Checkpoint("calls", 5));
    munmap(unmapped, 4096);
    Show("finalize", VELOC_Finalize(0));
    return 0;
  }
  if (strcmp(what, "ignore") == 0)
    Show("ignore", VELOC_Checkpoint("calls", 6)); /* stops, as all that follow */
  const int version = VELOC_Restart_test("calls", 0);
  Show("test", version);
  if (strcmp(what, "older") == 0) Show("older", VELOC_Restart_test("calls", version));
  if (strcmp(what, "other") == 0) Show("other", VELOC_Restart("calls", version - 1));
  if (version > 0) {
    Restart(version);
  } else {
    Save();
  }
  if (strcmp(what, "back") == 0) Show("back", VELOC_Restart("calls", version));
  return 0;
}
