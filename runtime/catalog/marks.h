// Marks: tags, pins and FINISHED, the small files by which people and the run itself point at checkpoints.
#ifndef CAIRN_RUNTIME_CATALOG_MARKS_H_
#define CAIRN_RUNTIME_CATALOG_MARKS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "planner/base/status.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

// A tag names one checkpoint and keeps it from being pruned; setting it again moves it. kInvalid for a tag
// that is no file name.
Status SetTag(const RunDirectory& dir, const std::string& tag, const std::string& checkpoint);
Status RemoveTag(const RunDirectory& dir, const std::string& tag);
Result<std::map<std::string, std::string>> ReadTags(const RunDirectory& dir);  // tag → checkpoint

// A pin keeps a checkpoint from being pruned.
Status Pin(const RunDirectory& dir, const std::string& checkpoint);
Status Unpin(const RunDirectory& dir, const std::string& checkpoint);
Result<std::set<std::string>> ReadPins(const RunDirectory& dir);

// FINISHED names the checkpoint at which the run ended. It counts only while that checkpoint is the newest
// candidate: a run that was started over afterwards is not finished.
Status WriteFinished(const RunDirectory& dir, const std::string& checkpoint);
Result<bool> IsFinished(const RunDirectory& dir, const Listing& listing);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_MARKS_H_
