#include "runtime/catalog/commit.h"

#include <utility>

#include "runtime/catalog/epoch.h"
#include "runtime/catalog/removal.h"
#include "runtime/formats/sums.h"
#include "runtime/io/new_files.h"
#include "runtime/io/random.h"
#include "runtime/io/together.h"

// How a checkpoint comes into being in a directory:
//
//   1. The leader makes step-<T>.e<epoch>.<id> and fsyncs the run's directory (BeginAttempt), and tells the members its name.
//   2. Writers make shards and checksum files in it, fsync them, and report their records. (Their names become durable with step 4.)
//   3. When all records are in, the leader reads the fence: a newer epoch ends it here.
//   4. It writes index.bin, blobs.cbor and, under names without meaning, the manifest and CURRENT; then fsyncs them and the attempt's folder, all at
//      once: they wait for the same disk. Now all contents are on the disk, and all names in the folder but the manifest's.
//   5. It renames the manifest into place: that is the commit. Before it nothing counts. It fsyncs the folder.
//   6. It reads the fence again. Still the newest: the new life, if there is one soon, will find the manifest. Not any more: the new life may
//      have looked before the rename, so what it made of the attempt is what counts; the save is reported as fenced.
//   7. CURRENT is renamed into place, if the fence could be read: a newer life's is not to be replaced. It is a hint: nobody waits until its name is durable, and that it fails is no failure of the commit.
//
// In a bucket, where an object is durable and whole when it can be seen:
//
//   1. to 3. are the same, without folders and fsyncs.
//   4. The leader puts index.bin and blobs.cbor.
//   5. It puts the manifest, the last object, which must not be there yet: that is the commit. When it is there, the answer to our own request was
//      lost; its content tells.
//   6. It reads the fence again, as above. Nothing has kept a stale writer's manifest from landing after the new life took over (epoch.cc, 4).
//   7. It puts CURRENT.
//
// Where several commit one attempt in a directory (Committers::kSeveral) they do it as in a bucket: each puts what is equal in all of them over
// what is there, whole and durable, and the manifest that is made first, exclusively, is the commit.
//
// A kill between any two of these leaves either an attempt without manifest, which the next life removes, or a whole checkpoint.

namespace cairn {
namespace {

// What is written besides the shards and their checksums.
struct Texts : CheckpointTexts {
  std::string current;  // "" = CURRENT stays as it is
};

// Steps 4, 5 and 7 in a directory.
class InDirectory {
 public:
  InDirectory(const RunDirectory& dir, const Attempt& attempt)
      : dir_(dir), folder_(attempt.path), files_(dir.mode()), hint_(dir.mode()) {}

  Status Commit(const Texts& texts) {
    CAIRN_ASSIGN_OR_RETURN(Written index,
                           Write(files_, folder_ + "/" + std::string(names::kIndex), texts.index));
    CAIRN_ASSIGN_OR_RETURN(Written blobs,
                           Write(files_, folder_ + "/" + std::string(names::kBlobs), texts.blobs));
    CAIRN_ASSIGN_OR_RETURN(Written manifest,
                           Write(files_, Temporary(folder_, names::kManifest), texts.manifest));
    Result<Written> current = Status(Code::kNotFound, "CURRENT stays as it is");
    if (!texts.current.empty())
      current = Write(hint_, Temporary(dir_.path(), names::kCurrent), texts.current);
    Status current_synced = current.status();
    CAIRN_RETURN_IF_ERROR(Together({[&] { return index.Sync(); }, [&] { return blobs.Sync(); },
                                    [&] { return manifest.Sync(); }, [&] { return SyncDirectory(folder_); },
                                    [&] {
                                      if (current.ok()) current_synced = current->Sync();
                                      return OkStatus();
                                    }}));
    CAIRN_RETURN_IF_ERROR(RenameDirectory(manifest.path, folder_ + "/" + std::string(names::kManifest)));
    files_.Keep();
    if (current_synced.ok()) current_ = current->path;
    return SyncDirectory(folder_);
  }

  void SetCurrent(const Texts&) {
    if (!current_.empty() && RenameDirectory(current_, dir_.PathOf(names::kCurrent)).ok()) hint_.Keep();
  }

 private:
  // A small file that is written and not durable yet.
  struct Written {
    std::string path;
    UniqueFd fd;

    Status Sync() {
      CAIRN_RETURN_IF_ERROR(SyncFile(fd.get(), path));
      return std::move(fd).Close(path);
    }
  };

  static std::string Temporary(const std::string& folder, std::string_view name) {
    return folder + "/" + std::string(kTemporaryPrefix) + std::string(name) + "-" + RandomHex(8);
  }

  static Result<Written> Write(NewFiles& owner, std::string path, std::string_view bytes) {
    CAIRN_ASSIGN_OR_RETURN(UniqueFd fd, owner.Write(path, bytes));
    return Written{std::move(path), std::move(fd)};
  }

  const RunDirectory& dir_;
  const std::string& folder_;
  NewFiles files_, hint_;
  std::string current_;  // CURRENT in the making, durable; "" = it could not be written
};

// The same in a bucket, or with other committers.
class WholeFiles {
 public:
  WholeFiles(const RunDirectory& dir, const Attempt& attempt) : dir_(dir), folder_(attempt.path) {}

  Status Commit(const Texts& texts) {
    const auto path = [&](std::string_view name) { return folder_ + "/" + std::string(name); };
    CAIRN_RETURN_IF_ERROR(
        Together({[&] { return PublishFile(path(names::kIndex), texts.index, dir_.mode()); },
                  [&] { return PublishFile(path(names::kBlobs), texts.blobs, dir_.mode()); }}));
    const Status made = CreateExclusive(path(names::kManifest), texts.manifest, dir_.mode());
    if (made.code() != Code::kExists) return made;
    CAIRN_ASSIGN_OR_RETURN(const std::string there, ReadAll(path(names::kManifest), kMaxManifestBytes));
    return there == texts.manifest ? OkStatus() : made;
  }

  void SetCurrent(const Texts& texts) {
    if (!texts.current.empty()) (void)PublishFile(dir_.PathOf(names::kCurrent), texts.current, dir_.mode());
  }

 private:
  const RunDirectory& dir_;
  const std::string& folder_;
};

// Steps 4 to 7.
template <typename Medium>
Status MakeCheckpoint(const RunDirectory& dir, const Attempt& attempt, const Texts& texts) {
  Medium medium(dir, attempt);
  CAIRN_RETURN_IF_ERROR(medium.Commit(texts));
  const Status fence = StillNewest(dir, attempt.owner);
  if (fence.code() == Code::kFenced || fence.code() == Code::kNotFound) return fence;
  if (fence.ok()) medium.SetCurrent(texts);
  return OkStatus();
}

Status MakeCheckpoint(const RunDirectory& dir, const Attempt& attempt, const Texts& texts,
                      Committers committers) {
  return dir.in_bucket() || committers == Committers::kSeveral
             ? MakeCheckpoint<WholeFiles>(dir, attempt, texts)
             : MakeCheckpoint<InDirectory>(dir, attempt, texts);
}

}  // namespace

Result<Attempt> BeginAttempt(const RunDirectory& dir, uint32_t epoch, int64_t step) {
  return BeginCopy(dir, epoch, {step, epoch, ""});
}

Result<Attempt> BeginCopy(const RunDirectory& dir, uint32_t owner, const names::Attempt& of) {
  Attempt attempt;
  attempt.owner = owner;
  attempt.name = {of.step, of.epoch, RandomHex(8)};
  attempt.path = dir.PathOf(attempt.name.ToString());
  CAIRN_RETURN_IF_ERROR(
      FileBytes(dir.PathOf(names::kRun)).status());  // a directory that was removed stays so
  CAIRN_RETURN_IF_ERROR(MakeDirectories(attempt.path, dir.mode()));
  return attempt;
}

Result<Manifest> Commit(const RunDirectory& dir, const Attempt& attempt, const Index& index,
                        const Blobs& blobs, Manifest manifest, Committers committers) {
  const uint32_t epoch = attempt.name.epoch;
  CAIRN_RETURN_IF_ERROR(StillNewest(dir, epoch));

  Texts texts;
  CAIRN_ASSIGN_OR_RETURN(texts.index, EncodeIndex(index));
  CAIRN_ASSIGN_OR_RETURN(texts.blobs, EncodeBlobs(blobs));
  manifest.run_id = dir.info().id;
  manifest.epoch = epoch;
  manifest.step = attempt.name.step;
  if (manifest.world_size == 0) manifest.world_size = index.world_size;
  manifest.writers = index.world_size == manifest.world_size ? 0 : index.world_size;
  manifest.time = UtcNow();
  manifest.index_bytes = texts.index.size();
  manifest.index_hash = Hash128Of(texts.index);
  manifest.blobs_bytes = texts.blobs.size();
  manifest.blobs_hash = Hash128Of(texts.blobs);
  manifest.total_bytes = texts.index.size() + texts.blobs.size();
  manifest.shards.clear();
  for (const ShardRecord& file : index.files) {
    manifest.shards.push_back({names::Shard(file.number), file.bytes});
    manifest.total_bytes += file.bytes + EncodedSumsBytes(file.bytes);
  }
  CAIRN_ASSIGN_OR_RETURN(texts.manifest, EncodeManifest(manifest));
  texts.current = attempt.name.ToString() + "\n";
  CAIRN_RETURN_IF_ERROR(MakeCheckpoint(dir, attempt, texts, committers));
  return manifest;
}

Status CommitCopy(const RunDirectory& dir, const Attempt& attempt, const CheckpointTexts& texts,
                  bool newest) {
  CAIRN_RETURN_IF_ERROR(StillNewest(dir, attempt.owner));
  return MakeCheckpoint(dir, attempt, Texts{texts, newest ? attempt.name.ToString() + "\n" : ""},
                        Committers::kOne);
}

Status Abandon(const RunDirectory& dir, const Attempt& attempt) {
  const std::string name = attempt.name.ToString();
  const Status removed = RemoveAttempt(dir, attempt.owner, name);
  if (removed.code() != Code::kFenced) return removed;
  // The newer life may have looked for attempts before this one was begun, so without a manifest it is still ours to remove.
  CAIRN_ASSIGN_OR_RETURN(const bool committed, HasManifest(dir, name));
  return committed ? removed : RemoveTree(attempt.path);
}

}  // namespace cairn
