// Summary: what `ls` and `show` say of one checkpoint, as flags for people and as JSON members.
#ifndef CAIRN_RUNTIME_COMMAND_SUMMARY_H_
#define CAIRN_RUNTIME_COMMAND_SUMMARY_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

// What points at the checkpoints of a run.
struct Pointers {
  std::string newest;                       // the one that a restart would take; "" = none
  std::map<std::string, std::string> tags;  // tag → checkpoint
  std::set<std::string> pins;
  bool finished = false;
};
Result<Pointers> ReadPointers(const RunDirectory& dir, const Listing& listing);

std::vector<std::string> TagsOf(const Checkpoint& checkpoint, const Pointers& pointers);

// "newest", "tag best", "pinned", "orphan", "damaged", "of a newer Cairn", "unreadable".
std::vector<std::string> Flags(const Checkpoint& checkpoint, const Pointers& pointers);

// "", or "forked from /x/run7@step-…", "imported from /x/model (dcp)".
std::string OriginText(const RunInfo& run);

// {"id", "name", "created", "origin"}; the last is null, or {"format", "path", "run_id", "checkpoint", "only"} (the third and fourth null for a foreign state, the last for all of it).
nlohmann::ordered_json RunJson(const RunInfo& run);

// {"val_loss=0.25", …}
std::vector<std::string> MetricTexts(const Manifest& manifest);

// Why it is damaged; "" = it is not, as far as is known without reading it.
std::string DamageOf(const Checkpoint& checkpoint);

// {"name", "step", "label", "epoch", "time", "trigger", "bytes", "ranks", "metrics", "newest", "tags", "pinned",
// "orphan", "damaged", "unreadable"}. What only the manifest knows is null where it cannot be read; the last two
// are the reason, or null. "metrics" is {name: {"value", "step"}}; a value that is no finite number is null.
nlohmann::ordered_json SummaryJson(const Checkpoint& checkpoint, const Pointers& pointers);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_SUMMARY_H_
