// ClassifyCause: why a job is being signalled, and by when it must be done. Pure.
//
// Slurm's signals look the same for all causes; only the job's record tells them apart. The rows are tried in this order (tried on Slurm 22.05 to
// 25.05: docs/design/slurm.md); the deadline of those that have begun to kill is KillWait from now.
//
//   record now                                     cause        deadline
//   Restarts above ours, NODE_FAIL                 kRequeued    KillWait. Slurm has requeued the job already: nothing to call
//   Reason=TimeLimit, TIMEOUT                      kTimeLimit   KillWait
//   PREEMPTED; or COMPLETING, not before
//     PreemptTime + GraceTime, of a job that Slurm
//     cannot requeue (it is no batch job, or has
//     --no-requeue, or the partition
//     PreemptMode=CANCEL)                          kPreempted   KillWait
//   any other state but RUNNING                    kCancelled   none: leave at once. COMPLETING hides a cancel
//   PreemptTime                                    kPreempted   the earlier of EndTime (unknown without a time limit) and PreemptTime + GraceTime
//   EndTime within the notice                      kTimeLimit   EndTime
//   otherwise; no record                           kUnknown     EndTime, if there is one
#ifndef CAIRN_RUNTIME_SLURM_CAUSE_H_
#define CAIRN_RUNTIME_SLURM_CAUSE_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/slurm/job_record.h"

namespace cairn {

enum class Cause : uint8_t { kUnknown, kPreempted, kTimeLimit, kRequeued, kCancelled };
std::string_view CauseName(Cause cause);  // "unknown", "preempted", "time limit", "requeued", "cancelled"

struct CauseReport {
  Cause cause = Cause::kUnknown;
  std::optional<int64_t> deadline;  // Unix seconds: SIGKILL is not sent before
  bool may_requeue = false;         // Cairn may requeue after the final save
  std::string why;                  // for the log: what the record said; why there will be no requeue
};

struct CauseContext {
  int our_restart = 0;             // SLURM_RESTART_COUNT of this life
  int64_t now = 0;                 // Unix seconds
  std::chrono::seconds notice{0};  // how long before EndTime our own watch fires
  std::chrono::seconds kill_wait{30};
  std::optional<PartitionRecord> partition;
};

// `record`: nullptr when Slurm did not answer within the bound.
CauseReport ClassifyCause(const JobRecord* record, const CauseContext& context);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SLURM_CAUSE_H_
