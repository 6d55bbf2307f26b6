#include "runtime/slurm/cause.h"

#include <algorithm>

namespace cairn {
namespace {

// Why the job will not be requeued by Cairn although the cause would allow it; "" when it may be.
std::string WhyStay(const JobRecord& record, bool cancelling_partition) {
  if (!record.batch) return "; it is no batch job, so Slurm cannot requeue it";
  if (!record.requeue) return "; it was submitted with --no-requeue";
  if (cancelling_partition) return "; its partition cancels preempted jobs (PreemptMode=CANCEL)";
  return "";
}

// Of a job that cannot be requeued: a cancel during the grace time looks the same, but comes earlier.
bool GraceTimeIsOver(const JobRecord& record, const CauseContext& context) {
  if (!record.preempt_time || record.state != "COMPLETING") return false;
  const auto grace = context.partition ? context.partition->grace_time : std::chrono::seconds(0);
  return record.end_time.value_or(context.now) >= *record.preempt_time + grace.count();
}

}  // namespace

std::string_view CauseName(Cause cause) {
  static constexpr std::string_view kNames[] = {"unknown", "preempted", "time limit", "requeued",
                                                "cancelled"};
  return kNames[static_cast<size_t>(cause)];
}

CauseReport ClassifyCause(const JobRecord* record, const CauseContext& context) {
  if (record == nullptr) return {Cause::kUnknown, std::nullopt, false, "Slurm did not tell"};
  const JobRecord& r = *record;
  const int64_t kill = context.now + context.kill_wait.count();
  const bool cancelling = context.partition && context.partition->preempt_mode == "CANCEL";

  if (r.restarts > context.our_restart || r.state == "NODE_FAIL") {
    return {Cause::kRequeued, kill, false, "Slurm has requeued the job already (" + r.state + ")"};
  }
  if (r.reason == "TimeLimit" || r.state == "TIMEOUT") {
    const std::string stay = WhyStay(r, false);
    return {Cause::kTimeLimit, kill, stay.empty(), "the job's time limit is reached" + stay};
  }
  const std::string stay_preempted = WhyStay(r, cancelling);
  if (r.state == "PREEMPTED" || (!stay_preempted.empty() && GraceTimeIsOver(r, context))) {
    return {Cause::kPreempted, kill, stay_preempted.empty(), "the job was preempted" + stay_preempted};
  }
  if (r.state != "RUNNING")
    return {Cause::kCancelled, std::nullopt, false, "the job was cancelled or has ended (" + r.state + ")"};
  if (r.preempt_time) {
    std::optional<int64_t> deadline = r.end_time;
    if (context.partition) {
      const int64_t grace_end = *r.preempt_time + context.partition->grace_time.count();
      deadline = std::min(deadline.value_or(grace_end), grace_end);
    }
    if (deadline) deadline = std::max(*deadline, context.now);
    return {Cause::kPreempted, deadline, stay_preempted.empty(),
            "the job is being preempted" + stay_preempted};
  }
  if (r.end_time && *r.end_time - context.now <= context.notice.count()) {
    const std::string stay = WhyStay(r, false);
    return {Cause::kTimeLimit, r.end_time, stay.empty(), "the job's time limit is near" + stay};
  }
  return {Cause::kUnknown, r.end_time, false, "Slurm's record shows no cause: the job is running"};
}

}  // namespace cairn
