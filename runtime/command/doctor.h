// Doctor: the checks of `cairn doctor`. Blocking I/O; one thread.
//
// A check is one line for the user: what was looked at, how it is, and what to do about it. Nothing fails
// here: what cannot be found out is a finding, too.
#ifndef CAIRN_RUNTIME_COMMAND_DOCTOR_H_
#define CAIRN_RUNTIME_COMMAND_DOCTOR_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

enum class Finding {
  kGood,
  kWarning,  // Cairn works, less well than it could
  kProblem,  // jobs will not be protected, or saves will fail
};

struct Check {
  std::string what;
  Finding finding = Finding::kGood;
  std::string text;
  std::string remedy;  // "" where nothing is to be done
};

// What is found on one host.
struct Diagnosis {
  std::string host;  // Slurm's name of the node, else the machine's own
  std::map<std::string, std::string>
      facts;  // what hosts of a cluster should have in common; the names are a part of --json
  std::vector<Check> checks;
};

// What scontrol says, or why there is no answer.
struct SlurmFacts {
  bool installed = false;
  std::string fault;                          // why it gave no answer; "" = it did
  std::map<std::string, std::string> config;  // `scontrol show config`: key → value
  std::string partitions;                     // `scontrol show partition -o`
};
SlurmFacts AskSlurm();

// One line of the plugin stack.
struct PluginLine {
  bool required = false;
  std::string path;
  std::vector<std::string> arguments;
};

// The line of our plugin in the plugin stack that begins in the file `path`, its includes followed; nothing
// when there is none.
std::optional<PluginLine> FindPluginLine(const std::string& path);

// The facts of a Diagnosis: which files are installed, told by path and content, what the plugin's line says, limits.
std::map<std::string, std::string> FindFacts(const std::optional<PluginLine>& plugin);

// Where the libraries lie: what the plugin was told (libdir=), else beside this program.
std::string LibraryDirectory(const std::optional<PluginLine>& plugin);

// Slurm's settings and our plugin. `plugin` as FindPluginLine found it.
std::vector<Check> CheckSlurm(const SlurmFacts& slurm);
std::vector<Check> CheckPlugin(const SlurmFacts& slurm, const std::string& stack,
                               const std::optional<PluginLine>& plugin);

// libcairn.so, the preload shim, that a program that starts under the shim stays as it is, and for which MPI there is a library.
std::vector<Check> CheckLibraries(const std::string& libdir);

// Tries everything that a save does in `dir`, or in its nearest parent that exists.
std::vector<Check> CheckDirectory(const std::string& dir);

// Below, `root` stands before each path; "" = the machine's own.

// Whether this is the node's own root and network, and whether what srun names to its tasks is in it. `get` gives a variable of the environment.
using GetVariable = std::function<std::optional<std::string>(const std::string& name)>;
std::vector<Check> CheckContainer(const std::string& root, const GetVariable& get);

// /dev/shm, who empties it, and the memory limit of this process.
std::vector<Check> CheckMemory(const std::string& root);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_DOCTOR_H_
