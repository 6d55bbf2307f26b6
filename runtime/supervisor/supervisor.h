// Supervise: runs a step of this job again and again until its program has ended, or another step would cure nothing.
//
//  1. Read the job's record; choose nodes and tasks from it (shape.h); spawn srun in an environment that tells it of this allocation.
//     srun's host process finds in it
//       CAIRN_RUN_JOB        this job; in another one, which a rank has submitted, the host ignores all of these
//       CAIRN_RUN_ID         of this process, random
//       CAIRN_RUN_LIFE       0, 1, …
//       CAIRN_RUN_DIR        the directory that the first life had, from the second life on
//       CAIRN_RUN_REPORT     a pipe to us, by name: the host writes the directory into it, and a line's end
//       CAIRN_RUN_MIN_NODES  so that `cairn resize` can refuse early
//     and hands to the ranks which life of which `cairn run` they are: then a lost rank ends the step, and a resize may.
//     Where srun has no plugin that starts a host process, we start it (host_process.h), put what it hands over into srun's environment, and
//     have Slurm run task-prolog before each task, which does what the plugin would do there. Where it cannot be had the first life runs
//     unprotected, or not at all with --checkpoint-require; a later one, which would begin from the start, is not begun.
//  2. Wait for srun. A SIGTERM goes to the step's tasks by scancel, and only while the job is not being ended by Slurm itself: srun would kill
//     them outright. While Slurm does not answer it is tried again. SIGUSR1 and SIGUSR2 go to srun, which hands them on; Ctrl-C reaches srun by the terminal.
//     srun only tells how its tasks stand at the first one; a second within a second ends the step, and is taken as the end of the run.
//  3. Judge how the life ended (judge.h) from srun's status, the job's record and the run's journal, which names the life, and say so in one line.
//  4. A life that made room for a resize (runtime/session/control_desk.h) has left in its journal what was asked for: shrink the job to
//     it, now that nothing runs on the nodes that go. Then 1 again.
//
// So nothing but this process decides about the next step, whoever changed the allocation: `cairn resize`, somebody's scontrol, or a node that
// died. When it is killed itself, the batch script ends, and the job with it.
#ifndef CAIRN_RUNTIME_SUPERVISOR_SUPERVISOR_H_
#define CAIRN_RUNTIME_SUPERVISOR_SUPERVISOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/supervisor/shape.h"

namespace cairn {

struct SuperviseOptions {
  uint32_t job = 0;
  int restart = 0;  // SLURM_RESTART_COUNT
  StepWish wish;
  int max_lives = 0;
  std::vector<std::string> command;  // srun and what follows
  bool plugin = true;                // srun has Cairn's plugin. If not:
  std::string program;               // `cairn`,
  std::string libdir;                // and where libcairn.so lies
};

// `options.command` is one that CheckCommand (shape.h) takes. Returns the exit code of the last life's srun. Blocking; call it from the program's main thread, with no other threads: it takes signals over.
Result<int> Supervise(const SuperviseOptions& options);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SUPERVISOR_SUPERVISOR_H_
