// Checkpoints: what a run has committed, in order, and how one is opened.
//
// The truth is the set of valid manifests. Order is (epoch, step). Each epoch published its parent when it
// had restored; following the parents from the newest epoch gives the run's line. Committed checkpoints off
// the line are orphans: another branch, kept, never resumed.
#ifndef CAIRN_RUNTIME_CATALOG_CHECKPOINTS_H_
#define CAIRN_RUNTIME_CATALOG_CHECKPOINTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/catalog/run_directory.h"
#include "runtime/formats/blobs.h"
#include "runtime/formats/index.h"
#include "runtime/formats/manifest.h"
#include "runtime/formats/names.h"

namespace cairn {

struct Checkpoint {
  std::string name;  // of its folder
  names::Attempt id;
  Status readable;  // not OK: the manifest could not be read, and `manifest` is empty
  Manifest manifest;
  bool orphan = false;
  std::string struck;  // why it was marked as damaged; "" = it is not
};

struct Listing {
  std::vector<Checkpoint> checkpoints;  // newest first
  std::string lost;                     // what CURRENT names, when it is on the line and not there any more
  std::map<uint32_t, int64_t> line;     // by epoch: up to which step it is on the line; absent = no step is

  bool OnLine(uint32_t epoch, int64_t step) const {
    const auto last = line.find(epoch);
    return last != line.end() && step <= last->second;
  }
};

// Everything that has a manifest. An error when the directory, the marks in it or CURRENT cannot be read, or the store is away.
Result<Listing> ListCheckpoints(const RunDirectory& dir);

// Those to restore from, newest first: on the line, not marked. One whose manifest is damaged, or of a newer Cairn, stands among them, so that
// the caller names and marks it, or stops, when its turn comes (LoadCheckpoint says kDamage, kMismatch).
std::vector<Checkpoint> Candidates(const Listing& listing);

// OK when a life without candidates may begin from nothing: the line has never committed. Otherwise kDamage, naming what there is or was.
Status MayStartFresh(const Listing& listing);

struct LoadedCheckpoint {
  std::string name;
  std::string path;  // absolute, of its folder
  Manifest manifest;
  Index index;
  Blobs blobs;
};

// Reads manifest, index and blobs, checks them against their hashes and each other, and the sizes of all
// files. kDamage only for what a second read confirms: wrong content, a file that is missing or has another
// size. kMismatch: a newer Cairn wrote it. kIo, kPermission, kNotFound (the whole checkpoint is gone): no verdict on the checkpoint.
Result<LoadedCheckpoint> LoadCheckpoint(const RunDirectory& dir, const std::string& name);

// The parts of LoadCheckpoint. `path` is the checkpoint's folder.
Result<Manifest> LoadManifest(const std::string& path);
Result<Index> LoadIndex(const std::string& path, const Manifest& manifest);
Result<Blobs> LoadBlobs(const std::string& path, const Manifest& manifest);

// Marks a checkpoint as damaged, with the reason: it is passed over from now on, and never pruned.
Status MarkDamaged(const RunDirectory& dir, const std::string& name, const std::string& reason);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_CHECKPOINTS_H_
