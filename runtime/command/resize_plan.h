// PlanResize: whether, and how, a running job can get another number of nodes. Pure.
//
//   shrink       fewer nodes, under `cairn run`: the job saves, its step makes room, the job is shrunk, the next step begins
//   grow         more nodes, under `cairn run`, where the site allows it: an allocation of the nodes that are missing waits in the queue while
//                the job goes on; once it is there it is merged into the job, which then saves and makes room for a step on all nodes
//   by requeue   only where the user asked for it, since the job may wait in the queue for long: it saves, is put back into the queue for the
//                new number of nodes, and resumes there
#ifndef CAIRN_RUNTIME_COMMAND_RESIZE_PLAN_H_
#define CAIRN_RUNTIME_COMMAND_RESIZE_PLAN_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/slurm/job_record.h"

namespace cairn {

struct ResizeWish {
  int nodes = 0;
  std::vector<std::string> names;  // which nodes to keep; empty = Slurm's choice
  bool requeue = false;
};

struct ResizeFacts {
  JobRecord job;
  std::vector<std::string> names;  // of the job's nodes
  std::string user;                // who asks; "root" may do everything but grow a job
  bool supervised = false;         // the job runs under `cairn run`,
  int min_nodes = 1;               // which does not go on with fewer
  std::string why_not;             // this life does not make room now; "" = it would
  bool may_shrink = true;          // Slurm has no disable_job_shrink
  bool may_grow = false;           // Slurm has permit_job_expansion
};

enum class ResizeWay : uint8_t { kShrink, kGrow, kRequeue };

// kUnavailable: it cannot be done; the message says why, and what can be done instead.
Result<ResizeWay> PlanResize(const ResizeWish& wish, const ResizeFacts& facts);

// Whether the life that runs can make room for another one: also to be asked after a wait, in which it may have ended. kUnavailable: it cannot.
Status CheckLife(const ResizeFacts& facts);

// What has become of a job whose donor has ended. `given`: with success. `before`, `after`: the names of the job's nodes then and now; nothing where they
// cannot be read.
enum class Growth : uint8_t { kGrown, kNothing, kUnknown };
Growth JudgeGrowth(bool given, const std::vector<std::string>& before,
                   const std::optional<std::vector<std::string>>& after);

// The nodes that the job loses when it is shrunk in place: those that are not named, else the last ones.
std::vector<std::string> NodesThatGo(const ResizeWish& wish, const ResizeFacts& facts);

// The salloc that gets the missing nodes, like those that the job has, within `patience`, and gives them to the job. It ends without leaving
// an allocation behind, also at a SIGTERM (donor.h). `now`: Unix seconds.
std::vector<std::string> DonorCommand(const ResizeWish& wish, const JobRecord& job,
                                      std::chrono::seconds patience, int64_t now);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_RESIZE_PLAN_H_
