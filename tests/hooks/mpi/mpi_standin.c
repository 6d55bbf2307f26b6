/* A STAND-IN for an MPI whose binary interface is not the one that libcairn_mpi.so was built for. Goes in LD_PRELOAD. */
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int MPI_Initialized(int* yes);
EXPORT int MPI_Get_library_version(char* text, int* length);

int MPI_Initialized(int* yes) {
  *yes = 1;
  return 0;
}

int MPI_Get_library_version(char* text, int* length) {
  strcpy(text, "Another MPI 4.1\nof nobody");
  *length = (int)strlen(text);
  return 0;
}
