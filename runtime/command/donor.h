// RunDonor: runs the salloc that gives a job more nodes (resize_plan.h, DonorCommand), and waits for its end.
//
// It is bounded by salloc's own --immediate, and by what Slurm allows nodes for their start. It does not outlive this process, however that ends: it gets
// a SIGTERM then, at which salloc gives up its place in the queue, or the nodes. A SIGKILL would leave both behind.
//
// Blocking; call it from the main thread, since its end counts as ours.
#ifndef CAIRN_RUNTIME_COMMAND_DONOR_H_
#define CAIRN_RUNTIME_COMMAND_DONOR_H_

#include <string>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

// kUnavailable: it failed; the message has its exit status and the first line of what it said.
Status RunDonor(std::vector<std::string> command);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_DONOR_H_
