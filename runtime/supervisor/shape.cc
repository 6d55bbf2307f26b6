#include "runtime/supervisor/shape.h"

#include <algorithm>
#include <string_view>

#include "runtime/supervisor/srun_options.h"

namespace cairn {
namespace {

std::string_view ProgramName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsChosenHere(std::string_view option) {
  static constexpr std::string_view kChosen[] = {"--nodes",
                                                 "--ntasks",
                                                 "--nodelist",
                                                 "--nodefile",
                                                 "--relative",
                                                 "-N",
                                                 "-n",
                                                 "-w",
                                                 "-F",
                                                 "-r",
                                                 "--ntasks-per-core",
                                                 "--ntasks-per-gpu",
                                                 "--ntasks-per-node",
                                                 "--ntasks-per-tres",
                                                 "--ntasks-per-socket",
                                                 "--tasks-per-node"};
  return std::find(std::begin(kChosen), std::end(kChosen), option) != std::end(kChosen);
}

}  // namespace

Result<StepShape> ShapeStep(const StepWish& wish, const JobRecord& job) {
  if (job.nodes < wish.min_nodes) {
    return Status(Code::kUnavailable, "the job has " + std::to_string(job.nodes) + " nodes (" +
                                          job.node_list +
                                          "), fewer than --min-nodes=" + std::to_string(wish.min_nodes));
  }
  StepShape shape;
  shape.nodes = wish.max_nodes > 0 ? std::min(wish.max_nodes, job.nodes) : job.nodes;
  switch (wish.tasks_from) {
    case TasksFrom::kNodes:
      shape.tasks = shape.nodes * wish.tasks_per_node;
      break;
    case TasksFrom::kCpus:
      shape.tasks = job.cpus * shape.nodes / std::max(job.nodes, 1);
      break;
    case TasksFrom::kGpus:
      shape.tasks = job.gpus * shape.nodes / std::max(job.nodes, 1);
      break;
  }
  if (shape.tasks < shape.nodes) {
    return Status(Code::kInvalid, "job " + std::to_string(job.job_id) + " has " + std::to_string(job.gpus) +
                                      " GPUs and " + std::to_string(job.cpus) + " CPUs on " +
                                      std::to_string(job.nodes) +
                                      " nodes: too few for --ntasks-from; give --tasks-per-node");
  }
  return shape;
}

Status CheckCommand(const std::vector<std::string>& command) {
  if (command.empty() || ProgramName(command[0]) != "srun") {
    return {Code::kInvalid,
            "the command must begin with srun: cairn run [options] -- srun [options] ./program"};
  }
  if (std::find(command.begin(), command.end(), ":") != command.end())
    return {Code::kInvalid, "`cairn run` starts one program: it takes no \":\" between several of them"};
  for (const SrunOption& option : ReadSrunCommand(command).options) {
    if (!IsChosenHere(option.name)) continue;
    return {Code::kInvalid,
            "srun's " + command[option.word] +
                " would hold for every life, whatever nodes the job has by then: leave it out, "
                "and give `cairn run` --tasks-per-node, --max-nodes and the like"};
  }
  return OkStatus();
}

std::vector<std::string> ShapeCommand(const std::vector<std::string>& command, const StepShape& shape) {
  std::vector<std::string> out = {command[0], "--nodes=" + std::to_string(shape.nodes),
                                  "--ntasks=" + std::to_string(shape.tasks), "--kill-on-bad-exit=1"};
  if (shape.tasks % shape.nodes == 0)
    out.push_back("--ntasks-per-node=" + std::to_string(shape.tasks / shape.nodes));
  out.insert(out.end(), command.begin() + 1, command.end());
  return out;
}

std::vector<std::string> ShapeEnvironment(const std::vector<std::string>& environment, const JobRecord& job) {
  static constexpr std::string_view kStale[] = {
      "SLURM_JOB_NODELIST",    "SLURM_NODELIST",       "SLURM_JOB_NUM_NODES",
      "SLURM_NNODES",          "SLURM_NTASKS",         "SLURM_NPROCS",
      "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"};
  std::vector<std::string> out;
  for (const std::string& variable : environment) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    if (std::find(std::begin(kStale), std::end(kStale), name) == std::end(kStale)) out.push_back(variable);
  }
  const std::string nodes = std::to_string(job.nodes);
  for (const char* name : {"SLURM_JOB_NODELIST=", "SLURM_NODELIST="}) out.push_back(name + job.node_list);
  for (const char* name : {"SLURM_JOB_NUM_NODES=", "SLURM_NNODES="}) out.push_back(name + nodes);
  return out;
}

}  // namespace cairn
