/* Heat in a rod, written to VELOC's calls: what moves to Cairn unchanged.
 *
 *     heat CFG CELLS ITERATIONS [DIES_AT [NAME]]      the last rank kills itself at iteration DIES_AT
 *
 * Rank r of n has the cells [CELLS*r/n, CELLS*(r+1)/n), with one halo cell at each end. Checkpoints every fifth iteration.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "veloc.h"

void heat_step(double* now, double* next, int cells); /* in step.cc, which includes veloc.h, too */

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  if (VELOC_Init(MPI_COMM_WORLD, argv[1]) != VELOC_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int all = atoi(argv[2]), iterations = atoi(argv[3]), dies_at = argc > 4 ? atoi(argv[4]) : 0;
  const char* name = argc > 5 ? argv[5] : "heat";
  const int first = all * rank / size, cells = all * (rank + 1) / size - first;
  double* now = calloc((size_t)cells + 2, sizeof *now);
  double* next = calloc((size_t)cells + 2, sizeof *next);
  int i = 0;
  for (int x = 1; x <= cells; ++x) now[x] = (first + x) * (first + x) % 17;

  VELOC_Mem_protect(0, &i, 1, sizeof i);
  VELOC_Mem_protect(1, now, (size_t)cells + 2, sizeof *now);
  const int version = VELOC_Restart_test(name, 0);
  if (version > 0) {
    if (VELOC_Restart(name, version) != VELOC_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 0) printf("restarted %d %d\n", version, i);
  }
  while (i < iterations) {
    const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(&now[1], 1, MPI_DOUBLE, left, 0, &now[cells + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&now[cells], 1, MPI_DOUBLE, right, 1, &now[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    heat_step(now, next, cells);
    double* swapped = now;
    now = next;
    next = swapped;
    ++i;
    if (i == dies_at && rank == size - 1) raise(SIGKILL);
    VELOC_Mem_protect(1, now, (size_t)cells + 2, sizeof *now); /* the buffers have changed places */
    if (i % 5 == 0 && VELOC_Checkpoint(name, i) != VELOC_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 4);
  }
  double sum = 0, total;
  for (int x = 1; x <= cells; ++x) sum += now[x] * (first + x);
  MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("total %a\n", total);
  free(now);
  free(next);
  VELOC_Finalize(1);
  MPI_Finalize();
  return 0;
}
