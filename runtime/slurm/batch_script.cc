#include "runtime/slurm/batch_script.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

namespace cairn {
namespace {

constexpr std::string_view kDaemon = "slurmstepd";
constexpr std::string_view kShells[] = {"sh",   "bash", "dash", "ash",  "ksh",
                                        "mksh", "zsh",  "csh",  "tcsh", "fish"};
constexpr int kMaxAncestors = 64;

// "4711 (name) S 1 …": the name may hold anything.
std::optional<Process> LookUp(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
  const size_t begin = text.find('('), end = text.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || text.size() < end + 4) return std::nullopt;
  return Process{text.substr(begin + 1, end - begin - 1), program.filename().string(),
                 std::atoi(text.c_str() + end + 4)};
}

}  // namespace

std::string ScriptOf(pid_t pid, const std::function<std::optional<Process>(pid_t)>& look_up) {
  std::string below;
  for (int i = 0; i < kMaxAncestors && pid > 0; ++i) {
    const std::optional<Process> process = look_up(pid);
    if (!process) return "";
    if (process->name == kDaemon) return below;
    below = process->program;
    pid = process->parent;
  }
  return "";
}

bool BelowShellScript(pid_t pid) {
  return std::find(std::begin(kShells), std::end(kShells), ScriptOf(pid, LookUp)) != std::end(kShells);
}

}  // namespace cairn
