#include <dlfcn.h>

#include <filesystem>

#include "cairn/cairn.h"
#include "cairn/cairn_carrier.h"
#include "runtime/command/doctor.h"
#include "runtime/slurm/run_now.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kBound{10};

Check CheckLibrary(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return {"libcairn", Finding::kProblem, std::string("cannot be loaded: ") + dlerror(),
            "install Cairn on this host, or give the plugin its place as libdir=DIR"};
  }
  const auto version = reinterpret_cast<int (*)()>(dlsym(handle, "cairn_abi_version"));
  const int abi = version == nullptr ? 0 : version();
  // Not closed: a library of the run time leaves threads' and exit's affairs behind.
  if (abi != CAIRN_ABI_VERSION) {
    return {"libcairn", Finding::kProblem,
            path + " has ABI version " + std::to_string(abi) + ", and this command " +
                std::to_string(CAIRN_ABI_VERSION),
            "install command, plugin and libraries of one version"};
  }
  return {"libcairn", Finding::kGood, path + ", ABI version " + std::to_string(abi), ""};
}

// A program under the shim, without a token, must be as it is without it: no handler, no thread.
Check CheckPreload(const std::string& shim) {
  const Result<std::string> seen =
      RunNow({"env", "LD_PRELOAD=" + shim, "cat", "/proc/self/maps", "/proc/self/status"}, kBound);
  if (!seen.ok()) {
    return {"preload", Finding::kProblem, "a program under " + shim + " failed: " + seen.status().message(),
            "reinstall Cairn; until then use --checkpoint=off"};
  }
  if (seen->find(fs::path(shim).filename().string()) == std::string::npos) {
    return {"preload", Finding::kProblem,
            shim + " is not loaded into programs (missing, or unfit for this system's loader)",
            "run `LD_PRELOAD=" + shim + " true` to see what the loader says"};
  }
  if (seen->find("\nSigCgt:\t0000000000000000\n") == std::string::npos ||
      seen->find("\nThreads:\t1\n") == std::string::npos) {
    return {"preload", Finding::kProblem, shim + " changes programs that are not protected",
            "please report this as a fault of Cairn"};
  }
  return {"preload", Finding::kGood, shim + " is loaded and leaves unprotected programs as they are", ""};
}

// Programs without MPI need none, and those with another one go without.
Check CheckMpi(const std::string& path) {
  if (!fs::exists(path))
    return {"mpi", Finding::kGood, "no " + path + ": the ranks of a restore hand on over TCP what they read",
            ""};
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto get =
      handle == nullptr ? nullptr : reinterpret_cast<cairn_carrier_get_fn*>(dlsym(handle, CAIRN_CARRIER_GET));
  const cairn_carrier_v1* const carrier = get == nullptr ? nullptr : get(1);
  if (carrier == nullptr) {
    return {"mpi", Finding::kWarning,
            path + " cannot be used" + (handle == nullptr ? std::string(": ") + dlerror() : ""),
            "install command, plugin and libraries of one version"};
  }
  return {"mpi", Finding::kGood, path + ", for programs with the binary interface of " + carrier->family, ""};
}

}  // namespace

std::string LibraryDirectory(const std::optional<PluginLine>& plugin) {
  if (plugin) {
    for (const std::string& argument : plugin->arguments) {
      if (argument.starts_with("libdir=")) return argument.substr(7);
    }
  }
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  return (program.parent_path().parent_path() / CAIRN_INSTALL_LIBDIR).string();
}

std::vector<Check> CheckLibraries(const std::string& libdir) {
  return {CheckLibrary(libdir + "/libcairn.so"), CheckPreload(libdir + "/cairn/libcairn_preload.so"),
          CheckMpi(libdir + "/cairn/libcairn_mpi.so")};
}

}  // namespace cairn
