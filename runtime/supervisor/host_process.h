// HostProcess: the host process of one step (runtime/host/host.h), as a child of `cairn run`, where srun has no plugin that starts it. The hand-over is
// the plugin's (docs/design/bootstrap.md, section 1).
//
// Blocking; one thread.
#ifndef CAIRN_RUNTIME_SUPERVISOR_HOST_PROCESS_H_
#define CAIRN_RUNTIME_SUPERVISOR_HOST_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/control/socket.h"

namespace cairn {

class HostProcess {
 public:
  // Starts `program` host --fd 3, and takes what it hands over, for at most `bound`; what it has for the user goes to stderr. kInvalid: it refuses
  // the step. kUnavailable: it is of no use, and the step can only run unprotected.
  static Result<std::unique_ptr<HostProcess>> Start(const std::string& program,
                                                    std::vector<std::string> environment,
                                                    std::chrono::milliseconds bound);
  ~HostProcess();  // ends it, and waits for that

  // NAME=VALUE, for the ranks.
  const std::vector<std::string>& variables() const { return variables_; }

 private:
  HostProcess() = default;
  Status Spawn(const std::string& program, std::vector<std::string> environment);
  Status TakeHandOver(std::chrono::milliseconds bound);

  Socket pair_;  // the host ends at its end
  pid_t pid_ = -1;
  std::vector<std::string> variables_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SUPERVISOR_HOST_PROCESS_H_
