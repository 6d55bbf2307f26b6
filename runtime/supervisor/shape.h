// StepShape: how many nodes and tasks the next step gets from what the job has now, and how srun is told. Pure.
#ifndef CAIRN_RUNTIME_SUPERVISOR_SHAPE_H_
#define CAIRN_RUNTIME_SUPERVISOR_SHAPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/slurm/job_record.h"

namespace cairn {

enum class TasksFrom : uint8_t { kNodes, kCpus, kGpus };

struct StepWish {
  int min_nodes = 1;
  int max_nodes = 0;  // 0 = as many as there are
  TasksFrom tasks_from = TasksFrom::kNodes;
  int tasks_per_node = 1;  // with kNodes
};

struct StepShape {
  int nodes = 0;
  int tasks = 0;
};

// kUnavailable: the job has fewer nodes than min_nodes; kInvalid: it has no GPUs to count.
Result<StepShape> ShapeStep(const StepWish& wish, const JobRecord& job);

// kInvalid when `command` is no srun, starts several programs, or fixes what `cairn run` must choose anew for each life (nodes, tasks, names of
// nodes).
Status CheckCommand(const std::vector<std::string>& command);

// The command with the shape as its first options, so that what the user wrote wins. A lost task ends the step.
std::vector<std::string> ShapeCommand(const std::vector<std::string>& command, const StepShape& shape);

// Without what Slurm has told the batch script about an allocation that may have changed since; with what holds now.
std::vector<std::string> ShapeEnvironment(const std::vector<std::string>& environment, const JobRecord& job);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SUPERVISOR_SHAPE_H_
