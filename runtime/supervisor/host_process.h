// HostProcess: the host process of one step (runtime/host/host.h), as a child of `cairn run`, where srun has no plugin that starts it.
// Blocking; one thread.
#ifndef CAIRN_RUNTIME_SUPERVISOR_HOST_PROCESS_H_
#define CAIRN_RUNTIME_SUPERVISOR_HOST_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/control/socket.h"

namespace cairn {

class HostProcess {
 public:
  // Starts `program` host, and waits until it serves. kUnavailable when it refuses: it has said why.
  static Result<std::unique_ptr<HostProcess>> Start(const std::string& program,
                                                    std::vector<std::string> environment);
  ~HostProcess();  // ends it, and waits for that

  // NAME=VALUE, for the ranks.
  const std::vector<std::string>& variables() const { return variables_; }

 private:
  HostProcess() = default;
  Socket life_line_;  // the host ends at its end
  pid_t pid_ = -1;
  std::vector<std::string> variables_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SUPERVISOR_HOST_PROCESS_H_
