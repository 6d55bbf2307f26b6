// Requeue: puts this very job back into the queue after its final save. Loop thread only.
//
//  1. Read the record. Restarts above ours: somebody has done it already, nothing to do. Cancelled or ended: never (a requeue would revive it).
//     No batch job, Requeue=0: Slurm would refuse, say so.
//  2. `scontrol requeue` of exactly this job: <array>_<task> for a task of an array, the leading component of a heterogeneous job.
//  3. Read the record again: scontrol reports success even when it did nothing. Only Restarts above ours counts.
//
// Slurm 24.05 and later requeue a job by themselves when its script ends in its grace time. A requeue by command lets them forget nothing of that time: when
// the next life has finished, they requeue the job once more (tried on 24.11.5). So there, where the caller can (`script_may_end`):
//
//  2. SIGSTOP to the script alone, so that it does not go on behind its srun; then SIGTERM to the step, as a requeue would. Should anything of it
//     fail, the script is continued, and 2 and 3 above follow.
//  3. When the step has ended, and all that it printed is out, or KillWait is over, the caller ends the script (EndScript). If it cannot, Slurm
//     does so at the end of the grace time.
//
// Slurm holds a requeued job for two minutes; by then this job's own processes are gone, so the hold can only be lifted from outside: the text
// gives the command.
#ifndef CAIRN_RUNTIME_SLURM_REQUEUE_H_
#define CAIRN_RUNTIME_SLURM_REQUEUE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/slurm/command.h"
#include "runtime/slurm/job_record.h"

namespace cairn {

struct RequeueOrder {
  uint32_t job = 0, step = 0;  // step: the one that is left when the script is to end
  int restart = 0;             // of this life
  bool script_may_end = false;
};

struct RequeueResult {
  bool requeued = false;
  std::string text;            // what happened and what will happen next, for the user
  std::string stopped_script;  // the job whose script is stopped, for EndScript; "" = none is
};

// The name that scontrol wants for exactly this job: "12", "12_3", or the leader's "12" for the component 13
// of a heterogeneous job.
std::string RequeueTarget(const JobRecord& record);

// What forbids a requeue, or "" when it is allowed.
std::string WhyNotRequeue(const JobRecord& record, int our_restart);

// `done` is called once, from the runner. `bound` is for each command.
void Requeue(CommandRunner* runner, const RequeueOrder& order, std::chrono::milliseconds bound,
             std::function<void(RequeueResult)> done);

// The command that ends the script which a requeue has stopped.
std::vector<std::string> EndScript(const std::string& job);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SLURM_REQUEUE_H_
