/* What VELOC allows and one run of Cairn does not: two groups of ranks that save independently. */
#include <mpi.h>
#include <stdio.h>

#include "veloc.h"

int main(int argc, char** argv) {
  int rank, i = 0;
  MPI_Comm group;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &group);
  VELOC_Init(group, "split.cfg");
  VELOC_Mem_protect(0, &i, 1, sizeof i);
  if (VELOC_Restart_test("split", 0) > 0) printf("restarted\n");
  VELOC_Checkpoint("split", 1);
  VELOC_Finalize(1);
  MPI_Finalize();
  return 0;
}
