// The user's registry of runs: ${XDG_STATE_HOME:-~/.local/state}/cairn/runs.jsonl, one line for each start of a step and each life's first commit.
// `cairn runs` lists it; a run that is in it has saved, and must never start fresh in silence.
#ifndef CAIRN_RUNTIME_HOST_REGISTRY_H_
#define CAIRN_RUNTIME_HOST_REGISTRY_H_

#include <cstdint>
#include <string>

#include "planner/base/status.h"
#include "runtime/host/directory.h"

namespace cairn {

// "" when neither XDG_STATE_HOME nor HOME is set.
std::string RegistryPath();

// Appends {"event", "job", "step", "restart", "dir", "name", "saved_step", "time"} in one write, so that lines of several hosts do not mix.
// event: "start" or "saved"; saved_step: of the commit, 0 at the start.
Status AppendToRegistry(const std::string& path, const std::string& event, const StepIdentity& step,
                        const std::string& dir, int64_t saved_step);

// Whether the registry says that an earlier life of this job has saved into `dir`. False when it cannot be read.
bool RegistryKnowsSave(const std::string& path, uint32_t job, const std::string& dir);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_HOST_REGISTRY_H_
