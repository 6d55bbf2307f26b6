#include "hooks/mpi/functions.h"

#include <dlfcn.h>

#include <string_view>

namespace cairn::mpi {
namespace {

std::string FamilyOf(const std::string& version) {
  for (const char* name : {"Open MPI", "Spectrum MPI"}) {
    if (version.find(name) != std::string::npos) return "Open MPI";
  }
  for (const char* name : {"MPICH", "Intel(R) MPI", "MVAPICH"}) {
    if (version.find(name) != std::string::npos) return "MPICH";
  }
  return "";
}

}  // namespace

std::string Mpi::Load(void* library) {
  const char* missing = nullptr;
  const auto find = [&](const char* name) {
    void* const found = dlsym(library, name);
    if (found == nullptr && missing == nullptr) missing = name;
    return found;
  };
  MPI_Get_library_version =
      reinterpret_cast<decltype(MPI_Get_library_version)>(find("MPI_Get_library_version"));
  if (missing != nullptr) return "the program's MPI is older than MPI 3";
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, std::string_view(text).find_first_of(",\n"));  // the first of its lines
  if (FamilyOf(version) != kFamily) {
    return "the program's MPI is \"" + version + "\", and Cairn was built for the binary interface of " +
           kFamily;
  }
#define X(name) name = reinterpret_cast<decltype(name)>(find(#name));
  CAIRN_MPI_FUNCTIONS(X)
#undef X
#ifdef OPEN_MPI
  world = static_cast<MPI_Comm>(find("ompi_mpi_comm_world"));
  byte = static_cast<MPI_Datatype>(find("ompi_mpi_byte"));
  errors_return = static_cast<MPI_Errhandler>(find("ompi_mpi_errors_return"));
#else
  world = MPI_COMM_WORLD;
  byte = MPI_BYTE;
  errors_return = MPI_ERRORS_RETURN;
#endif
  return missing == nullptr ? "" : "the program's MPI (" + version + ") lacks " + missing;
}

std::string Mpi::Text(int error) const {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS) return "error " + std::to_string(error);
  return text;
}

}  // namespace cairn::mpi
