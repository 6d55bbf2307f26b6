// RunNow: runs a program and waits for it, bounded. Blocking; one thread.
#ifndef CAIRN_RUNTIME_SLURM_RUN_NOW_H_
#define CAIRN_RUNTIME_SLURM_RUN_NOW_H_

#include <chrono>
#include <string>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

// Its standard output; environment and errors as command.h says.
Result<std::string> RunNow(std::vector<std::string> argv, std::chrono::milliseconds bound);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SLURM_RUN_NOW_H_
