// The durable directory of a step, from what the user wrote. Expansion is pure; the default name's ordinal is claimed in the file system.
#ifndef CAIRN_RUNTIME_HOST_DIRECTORY_H_
#define CAIRN_RUNTIME_HOST_DIRECTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planner/base/status.h"

namespace cairn {

struct StepIdentity {
  uint32_t job = 0;
  uint32_t step = 0;
  int restart = 0;
  std::optional<uint32_t> array_job, array_task;
  std::string job_name, user;
};

// %j job, %A array's job (else the job), %a array's task, %x job's name, %u user, %s step, %% a percent sign. A directory of an array's task
// without %a gets /task-<a>. `base`: what a relative one is relative to; s3://bucket/prefix is never relative. kInvalid: another letter after %, %a
// outside an array; the message names the option.
Result<std::string> ExpandDirectory(std::string_view option, std::string_view text, const StepIdentity& step,
                                    const std::string& base);

// The default: <submit_dir>/cairn-<job>/<name>, or <name>-<n> for the n-th step of that name in this life. So a script that runs again from its
// top finds each step's own. Claims the ordinal by exclusive create of cairn-<job>/.use/<restart>.<name>.<n>.
Result<std::string> ClaimDefaultDirectory(const std::string& submit_dir, const StepIdentity& step,
                                          const std::string& step_name);

// Whether `dir`, its links resolved as far as it exists, lies in or below one of the colon-separated `allowed`, which may be s3://bucket/prefix, too.
// An empty list allows all.
bool DirectoryAllowed(const std::string& dir, std::string_view allowed);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_HOST_DIRECTORY_H_
