// RunCommand: runs one of Slurm's commands from the loop, bounded. Loop thread only.
//
// The child has stdin on /dev/null, an empty signal mask, the caller's environment without LD_PRELOAD,
// SLURM_TIME_FORMAT and the tokens, with TZ=UTC and LC_ALL=C. Its death is seen by the end of its output: no
// SIGCHLD handler is installed.
#ifndef CAIRN_RUNTIME_SLURM_COMMAND_H_
#define CAIRN_RUNTIME_SLURM_COMMAND_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/control/loop.h"

namespace cairn {

// Its standard output, or: kTimeout (it was killed), kNotFound (no such program), kUnavailable (it failed;
// the message has its exit status and the first line of its standard error).
using CommandDone = std::function<void(Result<std::string>)>;

// `done` is called once, from the loop, never from within this call.
void RunCommand(Loop* loop, std::vector<std::string> argv, std::chrono::milliseconds bound, CommandDone done);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SLURM_COMMAND_H_
