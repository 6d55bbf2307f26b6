#include "runtime/catalog/commit.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "runtime/catalog/epoch.h"
#include "runtime/catalog/removal.h"
#include "runtime/formats/sums.h"
#include "runtime/io/new_files.h"
#include "runtime/io/random.h"
#include "runtime/io/together.h"

// How a checkpoint comes into being:
//
//   1. The leader makes step-<T>.e<epoch>.<id> and fsyncs the run's directory (BeginAttempt), and tells the members its name.
//   2. Writers make shards and checksum files in it, fsync them, and report their records. (Their names become durable with step 4.)
//   3. When all records are in, the leader reads the fence: a newer epoch ends it here.
//   4. It writes index.bin, blobs.cbor and, under names without meaning, the manifest and CURRENT; then fsyncs them and the attempt's folder, all at
//      once: they wait for the same disk. Now all contents are on the disk, and all names in the folder but the manifest's.
//   5. It renames the manifest into place: that is the commit. Before it nothing counts. It fsyncs the folder.
//   6. It reads the fence again. Still the newest: the new life, if there is one soon, will find the manifest. Not any more: the new life may
//      have looked before the rename, so what it made of the attempt is what counts; the save is reported as fenced.
//   7. CURRENT is renamed into place. It is a hint: nobody waits until its name is durable, and that it fails is no failure of the commit.
//
// A kill between any two of these leaves either an attempt without manifest, which the next life removes, or a whole checkpoint.

namespace cairn {
namespace {

// A small file that is written and not durable yet.
struct Written {
  std::string path;
  UniqueFd fd;

  Status Sync() {
    CAIRN_RETURN_IF_ERROR(SyncFile(fd.get(), path));
    return std::move(fd).Close(path);
  }
};

}  // namespace

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
  if (manifest.world_size == 0) manifest.world_size = index.world_size;
  manifest.writers = index.world_size == manifest.world_size ? 0 : index.world_size;
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

  NewFiles files(dir.mode()), hint(dir.mode());
  const auto temporary = [](const std::string& folder, std::string_view name) {
    return folder + "/" + std::string(kTemporaryPrefix) + std::string(name) + "-" + RandomHex(8);
  };
  const auto write = [](NewFiles& owner, std::string path, std::string_view bytes) -> Result<Written> {
    CAIRN_ASSIGN_OR_RETURN(UniqueFd fd, owner.Write(path, bytes));
    return Written{std::move(path), std::move(fd)};
  };
  CAIRN_ASSIGN_OR_RETURN(Written index_file,
                         write(files, attempt.path + "/" + std::string(names::kIndex), index_bytes));
  CAIRN_ASSIGN_OR_RETURN(Written blobs_file,
                         write(files, attempt.path + "/" + std::string(names::kBlobs), blobs_bytes));
  CAIRN_ASSIGN_OR_RETURN(Written manifest_file,
                         write(files, temporary(attempt.path, names::kManifest), manifest_text));
  Result<Written> current =
      write(hint, temporary(dir.path(), names::kCurrent), attempt.name.ToString() + "\n");
  Status current_synced = current.status();
  CAIRN_RETURN_IF_ERROR(
      Together({[&] { return index_file.Sync(); }, [&] { return blobs_file.Sync(); },
                [&] { return manifest_file.Sync(); }, [&] { return SyncDirectory(attempt.path); },
                [&] {
                  if (current.ok()) current_synced = current->Sync();
                  return OkStatus();
                }}));
  CAIRN_RETURN_IF_ERROR(
      RenameDirectory(manifest_file.path, attempt.path + "/" + std::string(names::kManifest)));
  files.Keep();
  CAIRN_RETURN_IF_ERROR(SyncDirectory(attempt.path));

  const Status fence = StillNewest(dir, epoch);
  if (fence.code() == Code::kFenced || fence.code() == Code::kNotFound) return fence;
  if (current_synced.ok() && RenameDirectory(current->path, dir.PathOf(names::kCurrent)).ok()) hint.Keep();
  return manifest;
}

Status Abandon(const RunDirectory& dir, const Attempt& attempt) {
  const std::string name = attempt.name.ToString();
  const Status removed = RemoveAttempt(dir, attempt.name.epoch, name);
  if (removed.code() != Code::kFenced) return removed;
  // The newer life may have looked for attempts before this one was begun, so without a manifest it is still ours to remove.
  CAIRN_ASSIGN_OR_RETURN(const bool committed, HasManifest(dir, name));
  return committed ? removed : RemoveTree(attempt.path);
}

}  // namespace cairn
