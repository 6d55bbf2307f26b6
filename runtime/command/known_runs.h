// KnownRuns: the runs that this user's steps have registered (runtime/host/registry.h), and how a user names
// one of them. Blocking I/O; one thread.
#ifndef CAIRN_RUNTIME_COMMAND_KNOWN_RUNS_H_
#define CAIRN_RUNTIME_COMMAND_KNOWN_RUNS_H_

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

// One line of the registry. Steps of one job are told apart by `step`.
struct KnownRun {
  uint32_t job = 0;
  uint32_t step = 0;
  int restart = 0;
  std::string dir;
  std::string name;
  std::time_t time = 0;
};

// Pure. Lines that are no such record (cut short by a full disk, of a later version) are left out.
std::vector<KnownRun> ParseKnownRuns(std::string_view registry);

// In the order in which they were written; empty where there is no registry yet.
Result<std::vector<KnownRun>> ReadKnownRuns();

// A user's JOB or JOB.STEP.
struct JobName {
  uint32_t job = 0;
  std::optional<uint32_t> step;
};
std::optional<JobName> ParseJobName(const std::string& text);

// The directory that JOB, JOB.STEP or DIR means. A name that is a directory is one, else digits are a job.
// kNotFound: no such job is known here; kInvalid: the job has several runs, and the message names them.
struct FoundRun {
  std::string dir;
  std::optional<JobName> job;  // when it was named by its job
};
Result<FoundRun> FindRun(const std::string& job_or_dir);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_KNOWN_RUNS_H_
