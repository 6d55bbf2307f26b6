/* Saves a state of float arrays, split over ranks by rows, in the ways that MPI programs know: one shared file, collectively written.
 *
 *     mpirun -n RANKS bench_peers_hpc FOLDER ARRAYS ELEMENTS
 *
 * Rank 0 reads a way's name a line on stdin ("MPI-IO", "HDF5") and answers "WAY<tab>SECONDS": until the bytes are durable. */
#include <fcntl.h>
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks, arrays;
static long elements, rows; /* of an array: over all ranks, on one */
static float* memory;       /* all arrays of this rank, one after the other */

static void check(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s failed\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void sync_path(const char* path) {
  const int file = open(path, O_RDONLY);
  check(file >= 0 && fsync(file) == 0, path);
  close(file);
}

static void save_by_mpi_io(const char* path) {
  MPI_File file;
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file) ==
            MPI_SUCCESS,
        "MPI_File_open");
  for (int i = 0; i < arrays; ++i) {
    const MPI_Offset offset = ((MPI_Offset)i * elements + rank * rows) * (MPI_Offset)sizeof(float);
    check(MPI_File_write_at_all(file, offset, memory + i * rows, (int)rows, MPI_FLOAT, MPI_STATUS_IGNORE) ==
              MPI_SUCCESS,
          "MPI_File_write_at_all");
  }
  check(MPI_File_sync(file) == MPI_SUCCESS && MPI_File_close(&file) == MPI_SUCCESS, "MPI_File_sync");
}

static void save_by_hdf5(const char* path) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  H5Pset_all_coll_metadata_ops(access, 1);
  H5Pset_coll_metadata_write(access, 1);
  H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  check(file >= 0, "H5Fcreate");
  const hsize_t whole = (hsize_t)elements, offset = (hsize_t)(rank * rows), count = (hsize_t)rows;
  const hid_t target = H5Screate_simple(1, &whole, NULL), source = H5Screate_simple(1, &count, NULL);
  H5Sselect_hyperslab(target, H5S_SELECT_SET, &offset, NULL, &count, NULL);
  for (int i = 0; i < arrays; ++i) {
    char name[32];
    snprintf(name, sizeof name, "layer%d", i);
    const hid_t set = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, target, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    check(set >= 0 && H5Dwrite(set, H5T_NATIVE_FLOAT, source, target, transfer, memory + i * rows) >= 0,
          "H5Dwrite");
    H5Dclose(set);
  }
  H5Sclose(source);
  H5Sclose(target);
  check(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 && H5Fclose(file) >= 0, "H5Fclose");
  H5Pclose(transfer);
  H5Pclose(access);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 4) return 2;
  arrays = atoi(argv[2]);
  elements = atol(argv[3]);
  rows = elements / ranks;
  memory = malloc((size_t)arrays * (size_t)rows * sizeof(float));
  for (long i = 0; i < arrays * rows; ++i) memory[i] = (float)i;
  char way[32], path[4096];
  for (int number = 0;; ++number) {
    if (rank == 0 && scanf("%31s", way) != 1) way[0] = 0;
    MPI_Bcast(way, sizeof way, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (way[0] == 0) break;
    snprintf(path, sizeof path, "%s/%d", argv[1], number);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (strcmp(way, "HDF5") == 0) {
      save_by_hdf5(path);
    } else {
      save_by_mpi_io(path);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      sync_path(path);
      sync_path(argv[1]);
      printf("%s\t%.9f\n", way, MPI_Wtime() - begin);
      fflush(stdout);
      unlink(path);
    }
  }
  free(memory);
  return MPI_Finalize();
}
