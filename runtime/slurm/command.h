// CommandRunner: runs Slurm's commands from the loop, bounded. Loop thread only.
//
// The children have stdin on /dev/null, an empty signal mask, default dispositions, and the environment of CommandEnvironment. Their death is seen by the end of their output: no SIGCHLD handler is installed.
#ifndef CAIRN_RUNTIME_SLURM_COMMAND_H_
#define CAIRN_RUNTIME_SLURM_COMMAND_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/control/loop.h"

namespace cairn {

// NAME=VALUE: the caller's, without LD_PRELOAD, Slurm's output formats, the token and the job's number, with TZ=UTC and LC_ALL=C.
std::vector<std::string> CommandEnvironment();

class CommandRunner {
 public:
  // Its standard output, or: kTimeout (it was killed), kNotFound (no such program), kUnavailable (it failed; the message has its exit status and
  // the first line of what it said).
  using Done = std::function<void(Result<std::string>)>;

  explicit CommandRunner(Loop* loop);
  ~CommandRunner();  // kills what still runs; its `done` is not called. It may stay a zombie until this process ends

  // `done` is called once, never from within this call.
  void Run(std::vector<std::string> argv, std::chrono::milliseconds bound, Done done);

 private:
  class Command;
  void ReapKilled();

  Loop* const loop_;
  std::list<std::unique_ptr<Command>> running_;
  std::vector<pid_t> killed_;  // to be reaped
  Timer reap_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SLURM_COMMAND_H_
