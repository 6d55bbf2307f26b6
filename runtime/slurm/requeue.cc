#include "runtime/slurm/requeue.h"

#include <utility>

namespace cairn {
namespace {

std::string Job(const std::string& target) { return "job " + target; }

// The requeue makes Slurm send SIGTERM to every process of the job, and a scontrol that is just running is one: it is run again.
constexpr int kTries = 3;

void ReadRecord(CommandRunner* runner, uint32_t job_id, std::chrono::milliseconds bound,
                std::function<void(Result<JobRecord>)> done, int tries = kTries) {
  runner->Run({"scontrol", "show", "job", "-o", std::to_string(job_id)}, bound,
              [=, done = std::move(done)](Result<std::string> text) {
                if (text.ok()) return done(ParseJobRecord(*text, job_id));
                if (tries == 1) return done(text.status());
                ReadRecord(runner, job_id, bound, done, tries - 1);
              });
}

std::string ItResumes(const std::string& target) {
  return " and will resume; Slurm holds it for two minutes, which its owner may end with: scontrol update "
         "JobId=" +
         target + " StartTime=now+2";
}

RequeueResult ReadBack(const Result<JobRecord>& record, int our_restart, const std::string& target,
                       const Status& called) {
  const std::string by_hand = "resubmit it, or try: scontrol requeue " + target;
  if (record.ok() && record->restarts > our_restart)
    return {true, Job(target) + " is requeued" + ItResumes(target), ""};
  if (!called.ok())
    return {false, Job(target) + " was not requeued: " + called.message() + "; " + by_hand, ""};
  if (!record.ok()) {
    return {false,
            "scontrol took the requeue of " + Job(target) + ", but its state could not be read back (" +
                record.status().message() + "): look at it with: squeue -j " + target,
            ""};
  }
  return {false,
          "scontrol reported the requeue of " + Job(target) + " as done, but its record says " +
              record->state + " with Restarts=" + std::to_string(record->restarts) + "; " + by_hand,
          ""};
}

void RequeueByCommand(CommandRunner* runner, const RequeueOrder& order, const std::string& target,
                      std::chrono::milliseconds bound, std::function<void(RequeueResult)> done) {
  runner->Run({"scontrol", "requeue", target}, bound, [=](const Result<std::string>& called) {
    ReadRecord(runner, order.job, bound, [=, called = called.status()](const Result<JobRecord>& now) {
      done(ReadBack(now, order.restart, target, called));
    });
  });
}

std::vector<std::string> SignalScript(const std::string& signal, const std::string& target) {
  return {"scancel", "--batch", "--signal=" + signal, target};
}

void RequeueByEnd(CommandRunner* runner, const RequeueOrder& order, const std::string& target,
                  std::chrono::milliseconds bound, std::function<void(RequeueResult)> done) {
  runner->Run(SignalScript("STOP", target), bound, [=](const Result<std::string>& stopped) {
    if (!stopped.ok()) return RequeueByCommand(runner, order, target, bound, done);
    const std::string step = target + "." + std::to_string(order.step);
    runner->Run({"scancel", "--signal=TERM", step}, bound, [=](const Result<std::string>& signalled) {
      if (signalled.ok())
        return done({true, Job(target) + " is requeued as its script ends," + ItResumes(target), target});
      runner->Run(SignalScript("CONT", target), bound,
                  [=](const Result<std::string>&) { RequeueByCommand(runner, order, target, bound, done); });
    });
  });
}

// Components of a heterogeneous job end one by one.
bool EndsInGraceTime(const JobRecord& record) {
  return record.preempt_time && record.state == "RUNNING" && record.het_job_id.value_or(0) == 0;
}

}  // namespace

std::string RequeueTarget(const JobRecord& record) {
  if (record.het_job_id && *record.het_job_id != 0) return std::to_string(*record.het_job_id);
  if (record.array_job_id && record.array_task_id) {
    return std::to_string(*record.array_job_id) + "_" + std::to_string(*record.array_task_id);
  }
  return std::to_string(record.job_id);
}

std::string WhyNotRequeue(const JobRecord& record, int our_restart) {
  if (record.restarts > our_restart) return "it has been requeued already";
  if (!record.batch) return "it is no batch job, so Slurm cannot requeue it";
  if (!record.requeue) return "it was submitted with --no-requeue";
  const bool at_limit = record.state == "COMPLETING" && record.reason == "TimeLimit";
  if (record.state != "RUNNING" && !at_limit) return "it was cancelled or has ended (" + record.state + ")";
  return "";
}

void Requeue(CommandRunner* runner, const RequeueOrder& order, std::chrono::milliseconds bound,
             std::function<void(RequeueResult)> done) {
  ReadRecord(runner, order.job, bound, [=, done = std::move(done)](Result<JobRecord> record) {
    if (!record.ok()) {
      return done({false,
                   Job(std::to_string(order.job)) + " is not requeued: its record cannot be read (" +
                       record.status().message() + ")",
                   ""});
    }
    const std::string target = RequeueTarget(*record);
    if (const std::string why = WhyNotRequeue(*record, order.restart); !why.empty()) {
      return done({record->restarts > order.restart, Job(target) + " is not requeued by Cairn: " + why, ""});
    }
    if (order.script_may_end && EndsInGraceTime(*record))
      return RequeueByEnd(runner, order, target, bound, done);
    RequeueByCommand(runner, order, target, bound, done);
  });
}

std::vector<std::string> EndScript(const std::string& job) { return SignalScript("KILL", job); }

}  // namespace cairn
