#include "runtime/command/resize_plan.h"

#include <algorithm>

namespace cairn {
namespace {

Status Refuse(std::string why) { return {Code::kUnavailable, std::move(why)}; }

std::string Nodes(int n) { return std::to_string(n) + (n == 1 ? " node" : " nodes"); }

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string Name(const ResizeFacts& facts) { return "job " + std::to_string(facts.job.job_id); }

Status CheckRuns(const ResizeFacts& facts) {
  if (facts.job.state != "RUNNING") return Refuse(Name(facts) + " is " + facts.job.state + ", not running");
  if (facts.job.preempt_time) return Refuse(Name(facts) + " is being preempted");
  return OkStatus();
}

Status CheckNames(const ResizeWish& wish, const ResizeFacts& facts) {
  if (wish.names.empty()) return OkStatus();
  if (wish.requeue)
    return Refuse(
        "--nodes and --requeue exclude each other: Slurm chooses the nodes of a job that it starts");
  for (const std::string& name : wish.names) {
    if (!Has(facts.names, name))
      return Refuse(name + " is none of the job's nodes (" + facts.job.node_list + ")");
  }
  if (!facts.job.batch_host.empty() && !Has(wish.names, facts.job.batch_host))
    return Refuse(facts.job.batch_host + " cannot go: the batch script runs on it");
  return OkStatus();
}

}  // namespace

Result<ResizeWay> PlanResize(const ResizeWish& wish, const ResizeFacts& facts) {
  const JobRecord& job = facts.job;
  const std::string name = Name(facts);
  const std::string by_requeue =
      "--requeue saves it and puts it back into the queue for " + Nodes(wish.nodes) + ", where it may wait";
  if (facts.user != job.user && facts.user != "root") return Refuse(name + " belongs to " + job.user);
  CAIRN_RETURN_IF_ERROR(CheckRuns(facts));
  if (wish.nodes == job.nodes && !wish.requeue)
    return Refuse(name + " has " + Nodes(job.nodes) + " already (" + job.node_list + ")");
  CAIRN_RETURN_IF_ERROR(CheckNames(wish, facts));
  if (facts.supervised && wish.nodes < facts.min_nodes) {
    return Refuse("its `cairn run` was started with --min-nodes=" + std::to_string(facts.min_nodes));
  }
  if (wish.requeue) {
    if (!job.batch) return Refuse(name + " is no batch job, so Slurm cannot requeue it");
    if (!job.requeue) return Refuse(name + " was submitted with --no-requeue");
    return ResizeWay::kRequeue;
  }
  const bool grows = wish.nodes > job.nodes;
  if (!facts.supervised) {
    return Refuse(name + " was not started by `cairn run`: its step would " +
                  (grows ? "not use the nodes that come" : "die with the nodes that go") +
                  ", and nobody would start the next one; " + by_requeue);
  }
  CAIRN_RETURN_IF_ERROR(CheckLife(facts));
  if (grows && facts.user != job.user)
    return Refuse("only " + job.user + " can let " + name +
                  " grow: its new nodes come from a job of whoever asks for them");
  if (grows && !facts.may_grow)
    return Refuse(
        "this site does not let running jobs grow (it has no SchedulerParameters=permit_job_expansion); " +
        by_requeue);
  if (grows) return ResizeWay::kGrow;
  if (!facts.may_shrink)
    return Refuse("this site does not let running jobs shrink (SchedulerParameters=disable_job_shrink); " +
                  by_requeue);
  return ResizeWay::kShrink;
}

Status CheckLife(const ResizeFacts& facts) {
  CAIRN_RETURN_IF_ERROR(CheckRuns(facts));
  return facts.why_not.empty() ? OkStatus() : Refuse(Name(facts) + " cannot make room: " + facts.why_not);
}

std::vector<std::string> NodesThatGo(const ResizeWish& wish, const ResizeFacts& facts) {
  if (wish.names.empty()) {
    const auto kept = std::min(static_cast<size_t>(wish.nodes), facts.names.size());
    return {facts.names.begin() + static_cast<std::ptrdiff_t>(kept), facts.names.end()};
  }
  std::vector<std::string> go;
  std::copy_if(facts.names.begin(), facts.names.end(), std::back_inserter(go),
               [&](const std::string& name) { return !Has(wish.names, name); });
  return go;
}

Growth JudgeGrowth(bool given, const std::vector<std::string>& before,
                   const std::optional<std::vector<std::string>>& after) {
  const bool more = after && std::any_of(after->begin(), after->end(),
                                         [&](const std::string& name) { return !Has(before, name); });
  if (given || more) return Growth::kGrown;
  return after ? Growth::kNothing : Growth::kUnknown;
}

// It gives its nodes away from within: what happens to this command, or to us, it ends with salloc. One task holds all CPUs of a node: how many tasks
// the job was submitted with says nothing of the nodes that it has by now.
std::vector<std::string> DonorCommand(const ResizeWish& wish, const JobRecord& job,
                                      std::chrono::seconds patience, int64_t now) {
  const int nodes = std::max(job.nodes, 1);
  std::vector<std::string> command = {"salloc",
                                      "--quiet",
                                      "--job-name=cairn-grow",
                                      "--immediate=" + std::to_string(patience.count()),
                                      "--dependency=expand:" + std::to_string(job.job_id),
                                      "--partition=" + job.partition,
                                      "--nodes=" + std::to_string(wish.nodes - job.nodes),
                                      "--ntasks-per-node=1",
                                      "--cpus-per-task=" + std::to_string(std::max(job.cpus / nodes, 1))};
  const auto add = [&command](const std::string& option, const std::string& value) {
    if (!value.empty()) command.push_back(option + value);
  };
  add("--account=", job.account);
  add("--qos=", job.qos);
  add("--mem=", job.memory_per_node);
  add("--mem-per-cpu=", job.memory_per_cpu);
  if (job.gpus > 0) add("--gpus-per-node=", std::to_string(job.gpus / nodes));
  if (job.end_time) add("--time=", std::to_string(std::max<int64_t>((*job.end_time - now + 59) / 60, 1)));
  // Of salloc it has a job's number again (command.h).
  command.insert(command.end(), {"sh", "-c",
                                 "donor=$SLURM_JOB_ID; unset SLURM_JOB_ID SLURM_JOBID; "
                                 "exec scontrol update JobId=$donor NumNodes=0"});
  return command;
}

}  // namespace cairn
