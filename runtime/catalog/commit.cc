#include "runtime/catalog/commit.h"

#include <sys/stat.h>

#include <cerrno>

#include "runtime/catalog/epoch.h"
#include "runtime/catalog/removal.h"
#include "runtime/formats/sums.h"
#include "runtime/io/random.h"

// How a checkpoint comes into being:
//
//   1. The leader makes step-<T>.e<epoch>.<id> and fsyncs the run's directory (BeginAttempt), and tells the members its name.
//   2. Writers make shards and checksum files in it, fsync them, and report their records. (Their names become durable with step 4.)
//   3. When all records are in, the leader reads the fence: a newer epoch ends it here.
//   4. It publishes index.bin and blobs.cbor (runtime/io/file.cc: each is whole and on the disk before its name is).
//   5. It publishes manifest.json. Its rename into place is the commit; before it nothing counts, after it everything is on the disk.
//   6. It reads the fence again. Still the newest: the new life, if there is one soon, will find the manifest. Not any more: the new life may
//      have looked before the rename, so what it made of the attempt is what counts; the save is reported as fenced.
//   7. CURRENT is replaced. It is a hint; that it fails is no failure of the commit.
//
// A kill between any two of these leaves either an attempt without manifest, which the next life removes, or a whole checkpoint.

namespace cairn {

Result<Attempt> BeginAttempt(const RunDirectory& dir, uint32_t epoch, int64_t step) {
  Attempt attempt;
  attempt.name = {step, epoch, RandomHex(8)};
  attempt.path = dir.PathOf(attempt.name.ToString());
  struct stat st;
  if (stat(dir.path().c_str(), &st) != 0) return Status::FromErrno(errno, "stat " + dir.path());
  CAIRN_RETURN_IF_ERROR(MakeDirectories(attempt.path, dir.mode()));
  return attempt;
}

Result<Manifest> Commit(const RunDirectory& dir, const Attempt& attempt, const Index& index,
                        const Blobs& blobs, Manifest manifest) {
  const uint32_t epoch = attempt.name.epoch;
  CAIRN_RETURN_IF_ERROR(StillNewest(dir, epoch));

  CAIRN_ASSIGN_OR_RETURN(const std::string index_bytes, EncodeIndex(index));
  CAIRN_ASSIGN_OR_RETURN(const std::string blobs_bytes, EncodeBlobs(blobs));
  manifest.run_id = dir.info().id;
  manifest.epoch = epoch;
  manifest.step = attempt.name.step;
  manifest.world_size = index.world_size;
  manifest.time = UtcNow();
  manifest.index_bytes = index_bytes.size();
  manifest.index_hash = Hash128Of(index_bytes);
  manifest.blobs_bytes = blobs_bytes.size();
  manifest.blobs_hash = Hash128Of(blobs_bytes);
  manifest.total_bytes = index_bytes.size() + blobs_bytes.size();
  manifest.shards.clear();
  for (const ShardRecord& file : index.files) {
    manifest.shards.push_back({names::Shard(file.number), file.bytes});
    manifest.total_bytes += file.bytes + EncodedSumsBytes(file.bytes);
  }
  CAIRN_ASSIGN_OR_RETURN(const std::string manifest_text, EncodeManifest(manifest));

  const auto publish = [&](std::string_view name, std::string_view bytes) {
    return PublishFile(attempt.path + "/" + std::string(name), bytes, dir.mode());
  };
  CAIRN_RETURN_IF_ERROR(publish(names::kIndex, index_bytes));
  CAIRN_RETURN_IF_ERROR(publish(names::kBlobs, blobs_bytes));
  CAIRN_RETURN_IF_ERROR(publish(names::kManifest, manifest_text));

  const Status fence = StillNewest(dir, epoch);
  if (fence.code() == Code::kFenced || fence.code() == Code::kNotFound) return fence;
  (void)PublishFile(dir.PathOf(names::kCurrent), attempt.name.ToString() + "\n", dir.mode());
  return manifest;
}

Status Abandon(const RunDirectory& dir, const Attempt& attempt) {
  return RemoveAttempt(dir, attempt.name.epoch, attempt.name.ToString());
}

}  // namespace cairn
