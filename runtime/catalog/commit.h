// Commit: how an attempt becomes a checkpoint. The protocol is described in commit.cc.
#ifndef CAIRN_RUNTIME_CATALOG_COMMIT_H_
#define CAIRN_RUNTIME_CATALOG_COMMIT_H_

#include <cstdint>
#include <string>

#include "planner/base/status.h"
#include "runtime/catalog/run_directory.h"
#include "runtime/formats/blobs.h"
#include "runtime/formats/index.h"
#include "runtime/formats/manifest.h"
#include "runtime/formats/names.h"

namespace cairn {

struct Attempt {
  names::Attempt name;
  std::string path;    // absolute; writers make their files in it, and fsync both the file and this folder
  uint32_t owner = 0;  // the epoch of the life that makes it: its name's, but for a copy
};

// Makes the attempt's folder, durably. Leader only.
Result<Attempt> BeginAttempt(const RunDirectory& dir, uint32_t epoch, int64_t step);

// The same for a copy of another directory's checkpoint (runtime/mirror/mirror.h): it keeps the step and the epoch, which must not be past
// `owner`, of that one.
Result<Attempt> BeginCopy(const RunDirectory& dir, uint32_t owner, const names::Attempt& of);

// Makes the attempt a checkpoint. Call it only when all members' records are in (`index.files`). Of
// `manifest` the caller fills run_id, label, trigger, parent, tag, cairn_version and settings, and world_size where
// ranks have written files together (0 = each writer is one); the rest is filled here. Returns what was written.
//
// kFenced: a newer epoch owns the directory, and decides what becomes of this attempt. Any other error: the
// attempt is no checkpoint as far as this life knows; Abandon it.
//
// Committers::kSeveral: others may do the same at this moment, with the same `index` and `blobs`. kExists: one of them was faster, and the attempt
// is a checkpoint.
enum class Committers { kOne, kSeveral };
Result<Manifest> Commit(const RunDirectory& dir, const Attempt& attempt, const Index& index,
                        const Blobs& blobs, Manifest manifest, Committers committers = Committers::kOne);

// The files of a checkpoint besides shards and checksums, byte for byte.
struct CheckpointTexts {
  std::string index, blobs, manifest;
};

// As Commit, for a copy: `texts` are those of the checkpoint that is copied. `newest`: CURRENT shall name it.
Status CommitCopy(const RunDirectory& dir, const Attempt& attempt, const CheckpointTexts& texts, bool newest);

// Removes an attempt of our own that will not be committed. kFenced: a newer epoch owns the directory, and decides about the attempt's manifest.
Status Abandon(const RunDirectory& dir, const Attempt& attempt);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_COMMIT_H_
