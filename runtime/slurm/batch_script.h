// The batch script that a process was started by, told by its ancestors: Slurm's daemon, the script's interpreter, …, srun, the process.
#ifndef CAIRN_RUNTIME_SLURM_BATCH_SCRIPT_H_
#define CAIRN_RUNTIME_SLURM_BATCH_SCRIPT_H_

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

namespace cairn {

struct Process {
  std::string name;  // as in /proc/<pid>/comm: of a script it is the script's
  std::string
      program;  // the file that runs, without its folder: of a script its interpreter; "" where it is another user's
  pid_t parent = 0;
};

// The program of the ancestor, or of the process itself, that Slurm's daemon has started; "" when there is none, or it cannot be told.
std::string ScriptOf(pid_t pid, const std::function<std::optional<Process>(pid_t)>& look_up);

// Whether that is a shell. A shell that stands still holds up nothing of what it has started. Another program may read srun's output, or be srun
// (`exec srun …`).
bool BelowShellScript(pid_t pid);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SLURM_BATCH_SCRIPT_H_
