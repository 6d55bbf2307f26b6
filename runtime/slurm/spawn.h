// Spawn: starts a program with an environment, descriptors and signals of our choice. Any thread.
#ifndef CAIRN_RUNTIME_SLURM_SPAWN_H_
#define CAIRN_RUNTIME_SLURM_SPAWN_H_

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

struct SpawnSetup {
  std::string program;                         // on PATH, where it has no slash
  std::vector<std::string> argv, environment;  // "NAME=VALUE"
  std::vector<std::pair<int, int>>
      descriptors;           // {ours, its number there}, in this order; ours -1 = /dev/null
  sigset_t defaults;         // those get their default action there. None is blocked
  bool own_session = false;  // no Ctrl-C of our terminal reaches it
};
Result<pid_t> Spawn(SpawnSetup setup);

// As exec wants them; they point into `strings`.
std::vector<char*> ExecPointers(std::vector<std::string>* strings);

// Of waitpid's status: "exit status 3", "signal 9".
std::string HowItEnded(int status);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SLURM_SPAWN_H_
