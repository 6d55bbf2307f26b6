#include "runtime/command/resize_plan.h"

#include <algorithm>

namespace cairn {
namespace {

Status Refuse(std::string why) { return {Code::kUnavailable, std::move(why)}; }

std::string Nodes(int n) { return std::to_string(n) + (n == 1 ? " node" : " nodes"); }

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
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
  const std::string name = "job " + std::to_string(job.job_id);
  const std::string by_requeue =
      "--requeue saves it and puts it back into the queue for " + Nodes(wish.nodes) + ", where it may wait";
  if (facts.user != job.user && facts.user != "root") return Refuse(name + " belongs to " + job.user);
  if (job.state != "RUNNING") return Refuse(name + " is " + job.state + ", not running");
  if (job.preempt_time) return Refuse(name + " is being preempted");
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
  if (wish.nodes > job.nodes)
    return Refuse("Slurm gives a running job no more nodes (" + name + " has " + Nodes(job.nodes) + "); " +
                  by_requeue);
  if (!facts.supervised) {
    return Refuse(
        name +
        " was not started by `cairn run`: its step would die with the nodes that go, and nobody would start "
        "the next one; " +
        by_requeue);
  }
  if (!facts.may_shrink)
    return Refuse("this site does not let running jobs shrink (SchedulerParameters=disable_job_shrink); " +
                  by_requeue);
  return ResizeWay::kInPlace;
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

}  // namespace cairn
