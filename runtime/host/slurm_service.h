// SlurmService: asks Slurm what the leader wants to know. Loop thread only. Where there is no Slurm (job 0) every answer is `unknown`.
#ifndef CAIRN_RUNTIME_HOST_SLURM_SERVICE_H_
#define CAIRN_RUNTIME_HOST_SLURM_SERVICE_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/control/loop.h"
#include "runtime/host/directory.h"
#include "runtime/host/host_protocol.h"
#include "runtime/slurm/command.h"
#include "runtime/slurm/job_record.h"

namespace cairn {

class SlurmService {
 public:
  // script_may_end: nobody but the batch script, if there is one, waits for the end of the step (RequeueOrder).
  SlurmService(Loop* loop, const StepIdentity& step, bool script_may_end);
  ~SlurmService();  // whatever is under way is forgotten

  // Each calls `done` once: the first two within 2 s, the last within three commands' bounds. A preempted cluster's jobs all ask at once, so
  // the question about the cause waits a random part of 100 ms. When the 2 s are over it is answered from the job's record alone, if that is
  // there; the partition's and Slurm's own settings are kept for the next time, whenever they come.
  void AskCause(const CauseQuery& query, std::function<void(CauseReply)> done);
  void AskHolder(const HolderQuery& query, std::function<void(HolderReply)> done);
  void AskRequeue(const RequeueQuery& query, std::function<void(RequeueReply)> done);

  // For EndScript, when the step has ended; "" = nothing is to be done.
  const std::string& stopped_script() const { return stopped_script_; }

 private:
  // A question about the cause that is under way, by a number of its own.
  struct Question {
    CauseQuery query;
    std::function<void(CauseReply)> done;
    std::optional<JobRecord> record;
    std::unique_ptr<Timer> jitter, bound;
  };
  void ReadJob(uint64_t question);
  void ReadPartition(uint64_t question);
  void ReadConfig(uint64_t question);
  void Classify(uint64_t question);
  void Finish(uint64_t question, CauseReply reply);

  Loop* const loop_;
  const StepIdentity step_;
  const bool script_may_end_;
  std::optional<PartitionRecord> partition_;       // read once
  std::optional<std::chrono::seconds> kill_wait_;  // read once, and with it
  int release_ = 0;                                // 2411; 0 = not known
  std::string stopped_script_;
  std::map<uint64_t, Question> questions_;
  uint64_t next_question_ = 0;
  CommandRunner runner_;
  Timer end_script_;  // of a step that does not end by SIGTERM
};

// Whether a life still runs, from the answers to `scontrol show job` and, when that says RUNNING, `scontrol show step` (else nullptr).
HolderReply JudgeHolder(const HolderQuery& query, const Result<std::string>& job,
                        const Result<std::string>* step);

// The name of a step in the answer to `scontrol show step -o`; "" when it is not told.
std::string StepName(std::string_view answer);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_HOST_SLURM_SERVICE_H_
