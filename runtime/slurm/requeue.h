// Requeue: puts this very job back into the queue after its final save. Loop thread only.
//
//  1. Read the record. Restarts above ours: somebody has done it already, nothing to do. Cancelled or ended: never (a requeue would revive it).
//     No batch job, Requeue=0: Slurm would refuse, say so.
//  2. `scontrol requeue` of exactly this job: <array>_<task> for a task of an array, the leading component of a heterogeneous job.
//  3. Read the record again: scontrol reports success even when it did nothing. Only Restarts above ours counts.
//
// Slurm holds a requeued job for two minutes; by then this job's own processes are gone, so the hold can only be lifted from outside: the text
// gives the command.
#ifndef CAIRN_RUNTIME_SLURM_REQUEUE_H_
#define CAIRN_RUNTIME_SLURM_REQUEUE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "planner/base/status.h"
#include "runtime/slurm/command.h"
#include "runtime/slurm/job_record.h"

namespace cairn {

struct RequeueResult {
  bool requeued = false;
  std::string text;  // what happened and what will happen next, for the user
};

// The name that scontrol wants for exactly this job: "12", "12_3", or the leader's "12" for the component 13
// of a heterogeneous job.
std::string RequeueTarget(const JobRecord& record);

// What forbids a requeue, or "" when it is allowed.
std::string WhyNotRequeue(const JobRecord& record, int our_restart);

// `done` is called once, from the runner. `bound` is for each command.
void Requeue(CommandRunner* runner, uint32_t job_id, int our_restart, std::chrono::milliseconds bound,
             std::function<void(RequeueResult)> done);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SLURM_REQUEUE_H_
