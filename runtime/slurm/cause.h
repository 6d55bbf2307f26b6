// ClassifyCause: why a job is being signalled, and by when it must be done. Pure.
//
// Slurm's signals look the same for all causes; only the job's record tells them apart. The rows, in the
// order in which they are tried (facts of Slurm 22.05 to 25.05, tried):
//
//   record now                                            cause        deadline
//   Restarts above ours                                   kRequeued    now + KillWait: already requeued,
//   nothing to call Reason=TimeLimit, or JobState=TIMEOUT                 kTimeLimit   now + KillWait
//   CANCELLED, or COMPLETING with Restarts as ours        kCancelled   none: leave at once
//   PreemptTime set                                       kPreempted   EndTime, or PreemptTime + GraceTime
//   where EndTime is unknown;
//                                                                      never later than PreemptTime +
//                                                                      GraceTime; at least now
//   PREEMPTED, NODE_FAIL                                  kPreempted, kRequeued   now + KillWait
//   RUNNING, and EndTime within the notice                kTimeLimit   EndTime
//   RUNNING otherwise                                     kUnknown     EndTime, if there is one
//   no record                                             kUnknown     none
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
