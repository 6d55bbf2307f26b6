#include <sys/resource.h>
#include <sys/statfs.h>

#include <filesystem>

#include "runtime/command/doctor.h"
#include "runtime/io/file.h"
#include "runtime/io/hash.h"
#include "runtime/slurm/run_now.h"
#include "runtime/staging/memory_room.h"
#include "runtime/version.h"

namespace cairn {
namespace {

constexpr std::chrono::seconds kBound{10};
constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;

// "/opt/cairn/lib/libcairn.so (1f2e3d4c)": two files of one version may differ.
std::string Fingerprint(const std::string& path) {
  const Result<std::string> content = ReadAll(path, kMaxFileBytes);
  return path + " (" + (content.ok() ? Hash128Of(*content).ToHex().substr(0, 8) : "cannot be read") + ")";
}

// The hard one: a soft limit comes along from where srun was called.
std::string Limit(decltype(RLIMIT_NOFILE) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return "not known";
  return limit.rlim_max == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_max);
}

std::string SharedMemory() {
  struct statfs fs_info;
  if (statfs("/dev/shm", &fs_info) != 0) return "none";
  return FormatBytes(static_cast<uint64_t>(fs_info.f_blocks) * static_cast<uint64_t>(fs_info.f_bsize));
}

std::string SlurmHere() {
  const Result<std::string> version = RunNow({"scontrol", "--version"}, kBound);
  return version.ok() ? version->substr(0, version->find('\n')) : "none";
}

}  // namespace

std::map<std::string, std::string> FindFacts(const std::optional<PluginLine>& plugin) {
  std::error_code ignored;
  std::string line = "none";
  if (plugin) {
    line = (plugin->required ? "required " : "optional ") + plugin->path;
    for (const std::string& argument : plugin->arguments) line += " " + argument;
  }
  return {{"version", kVersion},
          {"program", std::filesystem::read_symlink("/proc/self/exe", ignored).string()},
          {"libcairn", Fingerprint(LibraryDirectory(plugin) + "/libcairn.so")},
          {"plugin", plugin ? Fingerprint(plugin->path) : "none"},
          {"plugin_line", line},
          {"slurm", SlurmHere()},
          {"open_files", Limit(RLIMIT_NOFILE)},
          {"locked_memory", Limit(RLIMIT_MEMLOCK)},
          {"shared_memory", SharedMemory()}};
}

}  // namespace cairn
