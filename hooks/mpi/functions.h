// Mpi: the functions and handles of the program's MPI that Cairn uses. They are looked up in the library that the process has, so Cairn links no MPI, and one
// build serves every library with the same binary interface: that of Open MPI, whose handles are addresses, or that of MPICH (Intel MPI, MVAPICH, Cray MPICH),
// whose handles are numbers. A build knows the one whose mpi.h it saw.
#ifndef CAIRN_HOOKS_MPI_FUNCTIONS_H_
#define CAIRN_HOOKS_MPI_FUNCTIONS_H_

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string>

namespace cairn::mpi {

#define CAIRN_MPI_FUNCTIONS(X) \
  X(MPI_Initialized)           \
  X(MPI_Finalized)             \
  X(MPI_Get_library_version)   \
  X(MPI_Query_thread)          \
  X(MPI_Is_thread_main)        \
  X(MPI_Comm_size)             \
  X(MPI_Comm_rank)             \
  X(MPI_Comm_idup)             \
  X(MPI_Comm_get_errhandler)   \
  X(MPI_Comm_set_errhandler)   \
  X(MPI_Errhandler_free)       \
  X(MPI_Comm_free)             \
  X(MPI_Isend)                 \
  X(MPI_Irecv)                 \
  X(MPI_Test)                  \
  X(MPI_Get_count)             \
  X(MPI_Iprobe)                \
  X(MPI_Cancel)                \
  X(MPI_Error_string)

#ifdef OPEN_MPI
inline constexpr char kFamily[] = "Open MPI";
#else
inline constexpr char kFamily[] = "MPICH";
#endif

struct Mpi {
#define X(name) decltype(&::name) name = nullptr;
  CAIRN_MPI_FUNCTIONS(X)
#undef X
  MPI_Comm world;
  MPI_Datatype byte;
  MPI_Errhandler errors_return;

  // Finds them by dlsym in `library`. "": done; else why that MPI will not do.
  std::string Load(void* library);

  std::string Text(int error) const;
};

}  // namespace cairn::mpi

#endif  // CAIRN_HOOKS_MPI_FUNCTIONS_H_
