#include "runtime/mirror/mirror.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/catalog/commit.h"
#include "runtime/catalog/event.h"
#include "runtime/catalog/marks.h"
#include "runtime/formats/names.h"
#include "runtime/io/random.h"
#include "runtime/mirror/shard_copy.h"
#include "runtime/session/life.h"
#include "runtime/staging/memory_room.h"
#include "runtime/staging/pace.h"
#include "runtime/version.h"

// How a checkpoint of a run comes into its mirror:
//
//   1. Read leases keep all that are to be copied from being pruned from the run while they are read (retention.h).
//   2. A mirror that is not there is made: its RUN has the bytes of the run's. One that is there must have the run's id, and hold nothing that the
//      run never had: two continuations of one run (a folder that was copied, and both went on) do not mix.
//   3. A checkpoint of the same epoch and step, with the same manifest and all its files, is there already: nothing is done.
//   4. The mirror is claimed as a life claims its run (session/life.h), so that of several who mirror one does, and what an earlier one left
//      unfinished goes. The claim says that it only copies, and its number is not below the newest of the run's: a life that goes on from the
//      mirror gets a higher one than any that is copied. It may not follow a life's claim: then the run goes on in the mirror.
//   5. What epochs of the run have published as their parents is published in the mirror, too: line and orphans are those of the run. So what the run
//      has left behind does not count beside what is copied now. But for parents of which the mirror has no copy: it would have nothing to go on
//      from until 7.
//   6. An attempt is begun, with the epoch and the step of the checkpoint and an id of its own: names are never used twice there either, so a
//      stale mirrorer can add nothing to the attempt of another. Shards and checksums are copied, each block compared with its checksum.
//   7. The attempt is committed as any other (catalog/commit.cc), by the bytes of the run's own index, blobs and manifest, and the fence of the claim. Before
//      that nothing of it counts.
//   8. The parents that 5 left out, tags and FINISHED follow. Tags are those of the run, also where it has moved or removed one; pins are the
//      mirror's own.
//   9. What the mirror is not to keep is pruned, and the claim is given up in good order.
//
// A kill before 7 leaves an attempt that the next claim removes; after it, a whole checkpoint, and 8 is made up for by the next copy.
// In a bucket the manifest of a stale mirrorer may land behind 4 of the next one (epoch.cc, 4): over objects that are gone. Such a checkpoint is not
// taken for a copy in 3, but marked as damaged.

namespace cairn {
namespace {

void Fill(Identity* self, const std::string& copies) {
  char node[256] = "localhost";
  (void)gethostname(node, sizeof node - 1);
  self->node = node;
  self->pid = getpid();
  self->uid = getuid();
  self->cairn_version = kVersion;
  self->started = UtcNow();
  self->claim = RandomHex(16);
  self->copies = copies;
}

template <typename Matches>
const Checkpoint* FindCheckpoint(const Listing& listing, const Matches& matches) {
  const auto found = std::find_if(listing.checkpoints.begin(), listing.checkpoints.end(), matches);
  return found == listing.checkpoints.end() ? nullptr : &*found;
}

bool IsOfOneStep(const names::Attempt& a, const names::Attempt& b) {
  return a.epoch == b.epoch && a.step == b.step;
}

// What can be used in `there`; null: there is none. The manifest tells copies of one step apart: a program that stands still may be saved twice.
const Checkpoint* FindCopy(const Listing& there, const Checkpoint& what) {
  return FindCheckpoint(there, [&](const Checkpoint& c) {
    return c.struck.empty() && c.readable.ok() && IsOfOneStep(c.id, what.id) && c.manifest == what.manifest;
  });
}

// The same for a checkpoint of the run that `listing` is of; by its step alone where it has been pruned there.
const Checkpoint* FindCopy(const Listing& there, const Listing& listing, const std::string& name) {
  const Checkpoint* ours = FindCheckpoint(listing, [&](const Checkpoint& c) { return c.name == name; });
  if (ours != nullptr) return FindCopy(there, *ours);
  const auto id = names::ParseAttempt(name);
  return FindCheckpoint(there, [&](const Checkpoint& c) {
    return id && c.struck.empty() && c.readable.ok() && IsOfOneStep(c.id, *id);
  });
}

Result<std::vector<uint32_t>> Epochs(const RunDirectory& dir) {
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListDirectory(dir.path()));
  std::vector<uint32_t> epochs;
  for (const std::string& entry : entries) {
    if (const auto epoch = names::ParseEpochFile(entry)) epochs.push_back(*epoch);
  }
  return epochs;
}

// 2. `listing` is of `run`, and may be older than what is there.
Status MustBeOneLine(const RunDirectory& run, const Listing& listing, const RunDirectory& there) {
  const auto other = [&](const std::string& what) {
    return Status(Code::kMismatch, there.path() + " holds copies of another continuation of this run: " +
                                       what + ". Copy " + run.path() + " to another place");
  };
  CAIRN_ASSIGN_OR_RETURN(const std::optional<EpochClaim> claim, NewestEpoch(there));
  if (!claim || claim->holder.copies.empty()) return OkStatus();  // a life's: see 4
  CAIRN_ASSIGN_OR_RETURN(const Listing copies, ListCheckpoints(there));
  CAIRN_ASSIGN_OR_RETURN(const std::optional<EpochClaim> newest, NewestEpoch(run));
  for (const Checkpoint& copy : copies.checkpoints) {
    if (!copy.readable.ok()) continue;
    if (!newest || copy.id.epoch > newest->epoch)
      return other(copy.name + " is of a later life than the run here has had");
    // Two of one step of one life hold the same arrays, and one of them may have been pruned here.
    const auto of_its_step = [&](const Checkpoint& c) {
      return c.readable.ok() && IsOfOneStep(c.id, copy.id);
    };
    const auto of_its_arrays = [&](const Checkpoint& c) {
      return of_its_step(c) && c.manifest.index_hash == copy.manifest.index_hash;
    };
    if (FindCheckpoint(listing, of_its_step) != nullptr && FindCheckpoint(listing, of_its_arrays) == nullptr)
      return other(copy.name + " is not what the run here has saved at that step");
  }
  CAIRN_ASSIGN_OR_RETURN(const std::vector<uint32_t> epochs, Epochs(run));
  for (const uint32_t epoch : epochs) {
    CAIRN_ASSIGN_OR_RETURN(const std::optional<std::string> parent, ReadParent(run, epoch));
    CAIRN_ASSIGN_OR_RETURN(const std::optional<std::string> theirs, ReadParent(there, epoch));
    const auto from = [](const std::string& name) { return name.empty() ? "nothing" : name; };
    if (parent && theirs && *parent != *theirs)
      return other("life " + std::to_string(epoch) + " went on from " + from(*theirs) + " there, from " +
                   from(*parent) + " here");
  }
  return OkStatus();
}

// The bytes of a file whose hash the manifest tells.
Result<std::string> ReadHashed(const std::string& path, uint64_t bytes, const Hash128& hash) {
  CAIRN_ASSIGN_OR_RETURN(std::string text, ReadAll(path, bytes));
  if (Hash128Of(std::string_view(text)) == hash) return text;
  return Status(Code::kDamage, path + " does not match the hash in the manifest");
}

Result<CheckpointTexts> ReadTexts(const LoadedCheckpoint& what) {
  const auto path = [&](std::string_view name) { return what.path + "/" + std::string(name); };
  const Manifest& manifest = what.manifest;
  CheckpointTexts texts;
  CAIRN_ASSIGN_OR_RETURN(texts.index,
                         ReadHashed(path(names::kIndex), manifest.index_bytes, manifest.index_hash));
  CAIRN_ASSIGN_OR_RETURN(texts.blobs,
                         ReadHashed(path(names::kBlobs), manifest.blobs_bytes, manifest.blobs_hash));
  CAIRN_ASSIGN_OR_RETURN(texts.manifest, ReadAll(path(names::kManifest), kMaxManifestBytes));
  CAIRN_ASSIGN_OR_RETURN(const Manifest again, DecodeManifest(texts.manifest));
  if (again == manifest) return texts;
  return Status(Code::kDamage, path(names::kManifest) + " changed while it was read");
}

// kExists: the place holds something, and not only a RUN in the making.
Status IsEmpty(const std::string& place) {
  const Result<std::vector<std::string>> entries = ListDirectory(place);
  if (entries.status().code() == Code::kNotFound) return OkStatus();
  CAIRN_RETURN_IF_ERROR(entries.status());
  for (const std::string& entry : *entries) {
    if (!entry.starts_with(".tmp-RUN"))
      return {Code::kExists, place + " is no run and not empty (" + entry +
                                 "): name a new place, for example a folder in it"};
  }
  return OkStatus();
}

bool IsOlder(const names::Attempt& a, const names::Attempt& b) {
  return std::tie(a.epoch, a.step) < std::tie(b.epoch, b.step);
}

}  // namespace

Status MayMirror(const std::string& from, const std::string& to) {
  if (!LiesIn(to, from)) return OkStatus();
  return {Code::kInvalid, to + " lies in the run's directory " + from +
                              " itself: copy to another place, for example /archive/run7 or s3://lab/run7"};
}

std::string Describe(const Copied& copied, const std::string& to) {
  const double seconds = std::max(std::chrono::duration<double>(copied.took).count(), 1e-6);
  const auto rate = static_cast<uint64_t>(static_cast<double>(copied.bytes) / seconds);
  return "step " + std::to_string(copied.step) + " copied to " + to + ": " + FormatBytes(copied.bytes) +
         " in " + FormatDuration(copied.took) + ", " + FormatBytes(rate) + "/s";
}

Mirror::Mirror(std::string from, std::string to, MirrorOptions options)
    : from_(std::move(from)), to_(std::move(to)), options_(std::move(options)) {}

Mirror::~Mirror() = default;

Status Mirror::Copy(const std::vector<std::string>& checkpoints) {
  const Status copied = CopyAll(checkpoints);
  fresh_.clear();
  if (life_) (void)life_->End();  // where it fails the next claim waits for a while
  life_.reset();
  if (!copied.ok() && copied.code() != Code::kCancelled) {
    if (const auto run = RunDirectory::OpenExisting(from_); run.ok())
      (void)AppendEvent(*run, "copy_failed", 0, {{"to", JsonText(to_)}, {"why", JsonText(copied.message())}});
  }
  return copied;
}

Status Mirror::CopyAll(const std::vector<std::string>& checkpoints) {
  CAIRN_RETURN_IF_ERROR(MayMirror(from_, to_));
  CAIRN_ASSIGN_OR_RETURN(const RunDirectory run, RunDirectory::OpenExisting(from_));
  const BeatingLeases leases(run, checkpoints);  // 1.
  CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(run));
  CAIRN_ASSIGN_OR_RETURN(const RunDirectory there, OpenMirror(run));
  CAIRN_RETURN_IF_ERROR(MustBeOneLine(run, listing, there));
  std::set<std::string> gone(checkpoints.begin(), checkpoints.end());
  for (auto c = listing.checkpoints.rbegin(); c != listing.checkpoints.rend(); ++c) {  // the oldest first
    if (gone.erase(c->name) > 0) CAIRN_RETURN_IF_ERROR(CopyOne(run, there, *c));
  }
  for (const std::string& name : gone)
    PassOver(run, name, {Code::kNotFound, run.PathOf(name) + " is gone: it was pruned meanwhile"});
  CAIRN_RETURN_IF_ERROR(BringMarks(run, listing, there));
  return Prune(run, there);
}

void Mirror::PassOver(const RunDirectory& run, const std::string& name, const Status& why) const {
  if (why.code() == Code::kDamage)
    (void)AppendEvent(
        run, "copy_failed", 0,
        {{"to", JsonText(to_)}, {"checkpoint", JsonText(name)}, {"why", JsonText(why.message())}});
  options_.passed_over(name, why);
}

Result<Nanoseconds> Mirror::TooEarly(const Checkpoint& what, Nanoseconds every) const {
  const auto saved = [](const Checkpoint& c) {
    return Nanoseconds(std::chrono::seconds(ParseUtc(c.manifest.time).value_or(0)));
  };
  const Result<RunDirectory> there = RunDirectory::OpenExisting(to_);
  if (there.status().code() == Code::kNotFound) return Nanoseconds(0);
  CAIRN_RETURN_IF_ERROR(there.status());
  if (there->info().id != what.manifest.run_id) return Nanoseconds(0);  // Copy says so
  CAIRN_ASSIGN_OR_RETURN(const Listing copies, ListCheckpoints(*there));
  Nanoseconds early(0);
  for (const Checkpoint& copy : copies.checkpoints) {
    if (!copy.readable.ok() || !copy.struck.empty()) continue;
    if (copy.manifest == what.manifest) return Nanoseconds(0);
    early = std::max(early, saved(copy) + every - saved(what));
  }
  return early;
}

// 2.
Result<RunDirectory> Mirror::OpenMirror(const RunDirectory& run) const {
  Result<RunDirectory> there = RunDirectory::OpenExisting(to_);
  if (there.status().code() == Code::kNotFound) {
    CAIRN_RETURN_IF_ERROR(IsEmpty(to_));
    CAIRN_ASSIGN_OR_RETURN(const std::string text, ReadAll(run.PathOf(names::kRun), 1 << 20));
    CAIRN_RETURN_IF_ERROR(MakeDirectories(to_, options_.mode));
    const Status made = CreateExclusive(to_ + "/" + std::string(names::kRun), text, options_.mode);
    // Not found: another who mirrors has taken our file in the making for rubbish (TakeOver), and made one.
    if (!made.ok() && made.code() != Code::kExists && made.code() != Code::kNotFound) return made;
    there = RunDirectory::OpenExisting(to_);
  }
  if (there.ok() && there->info().id != run.info().id)
    return Status(Code::kMismatch, to_ + " holds another run (" + there->info().id + ", not " +
                                       run.info().id + " of " + from_ + "). Copy to another place");
  return there;
}

Status Mirror::CopyOne(const RunDirectory& run, const RunDirectory& there, const Checkpoint& what) {
  const auto begin = std::chrono::steady_clock::now();
  const auto pass_over = [&](const Status& why) {
    PassOver(run, what.name, why);
    return OkStatus();
  };
  const Result<LoadedCheckpoint> loaded = LoadCheckpoint(run, what.name);
  if (loaded.status().code() == Code::kDamage || loaded.status().code() == Code::kNotFound)
    return pass_over(loaded.status());
  CAIRN_RETURN_IF_ERROR(loaded.status());
  Copied copied{.from = what.name, .step = what.id.step, .bytes = what.manifest.total_bytes};
  CAIRN_ASSIGN_OR_RETURN(copied.name, FindWhole(run, there, what));
  copied.was_there = !copied.name.empty();
  if (!copied.was_there) {
    CAIRN_RETURN_IF_ERROR(Own(run));
    const Status written = Write(*loaded, what, &copied);
    if (written.code() == Code::kDamage ||
        (written.code() == Code::kNotFound && LoadManifest(loaded->path).status().code() == Code::kNotFound))
      return pass_over(written);
    CAIRN_RETURN_IF_ERROR(written);
    copied.took = std::chrono::steady_clock::now() - begin;
    (void)AppendEvent(run, "copied", 0,
                      {{"checkpoint", JsonText(what.name)},
                       {"step", std::to_string(copied.step)},
                       {"to", JsonText(to_)},
                       {"copy", JsonText(copied.name)},
                       {"bytes", std::to_string(copied.bytes)},
                       {"copy_ns", std::to_string(copied.took.count())}});
  }
  fresh_.push_back(copied.name);
  if (options_.copied) options_.copied(copied);
  return OkStatus();
}

// 3. "" = there is none.
Result<std::string> Mirror::FindWhole(const RunDirectory& run, const RunDirectory& there,
                                      const Checkpoint& what) {
  CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(there));
  const Checkpoint* copy = FindCopy(listing, what);
  if (copy == nullptr) return std::string();
  const Status whole = LoadCheckpoint(there, copy->name).status();
  if (whole.ok()) return copy->name;
  if (whole.code() != Code::kDamage) return whole;
  CAIRN_RETURN_IF_ERROR(Own(run));
  CAIRN_RETURN_IF_ERROR(MarkDamaged(life_->directory(), copy->name, whole.message()));
  return std::string();
}

// 4.
Status Mirror::Own(const RunDirectory& run) {
  if (life_) return OkStatus();
  CAIRN_ASSIGN_OR_RETURN(const std::optional<EpochClaim> newest, NewestEpoch(run));
  LifeOptions options;
  options.dir = to_;
  options.name = run.info().name;
  options.mode = options_.mode;
  options.self = options_.self;
  Fill(&options.self, from_);
  options.at_least = newest ? newest->epoch : 1;
  options.ask_slurm = [](const Identity&) { return HolderInSlurm::kUnknown; };
  options.say = options_.say;
  CAIRN_ASSIGN_OR_RETURN(life_, Life::Begin(options));
  return BringParents(run, life_->directory(), Which::kWithTheirCheckpoint);
}

// 6 and 7.
Status Mirror::Write(const LoadedCheckpoint& what, const Checkpoint& listed, Copied* copied) {
  const RunDirectory& there = life_->directory();
  CAIRN_ASSIGN_OR_RETURN(const CheckpointTexts texts, ReadTexts(what));
  CAIRN_ASSIGN_OR_RETURN(const Attempt attempt, BeginCopy(there, life_->epoch(), listed.id));
  copied->name = attempt.name.ToString();
  Pace pace(options_.bytes_per_second);
  uint64_t done = 0, total = 0;
  for (const ShardRecord& file : what.index.files) total += file.bytes;
  const auto tell = [&](uint64_t bytes) {
    done += bytes;
    if (options_.under_way) options_.under_way(listed, done, total);
  };
  const auto make = [&]() -> Status {
    tell(0);
    for (const ShardRecord& file : what.index.files)
      CAIRN_RETURN_IF_ERROR(
          CopyShard(file, what.path, attempt.path,
                    {.mode = options_.mode, .pace = &pace, .copied = tell, .stop = options_.stop}));
    CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(there));
    const bool newest =
        std::all_of(listing.checkpoints.begin(), listing.checkpoints.end(),
                    [&](const Checkpoint& c) { return c.orphan || IsOlder(c.id, listed.id); });
    return CommitCopy(there, attempt, texts, newest);
  };
  Status made = make();
  if (made.ok()) return made;
  if (Status fence = StillNewest(there, life_->epoch()); fence.code() == Code::kFenced)
    made = std::move(fence);
  // Who is stopped has no time: the next claim removes it.
  if (made.code() != Code::kCancelled) (void)Abandon(there, attempt);
  return made;
}

// 5, and the first part of 8.
Status Mirror::BringParents(const RunDirectory& run, const RunDirectory& there, Which which) {
  CAIRN_ASSIGN_OR_RETURN(const std::vector<uint32_t> epochs, Epochs(run));
  CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(run));
  CAIRN_ASSIGN_OR_RETURN(const Listing copies, ListCheckpoints(there));
  for (const uint32_t epoch : epochs) {
    CAIRN_ASSIGN_OR_RETURN(const std::optional<std::string> parent, ReadParent(run, epoch));
    if (!parent) continue;
    if (which == Which::kWithTheirCheckpoint && FindCopy(copies, listing, *parent) == nullptr) continue;
    CAIRN_ASSIGN_OR_RETURN(const std::optional<std::string> brought, ReadParent(there, epoch));
    if (brought) continue;
    CAIRN_RETURN_IF_ERROR(Own(run));
    if (epoch > life_->epoch()) continue;  // of a life that has begun meanwhile: here it is another's number
    CAIRN_RETURN_IF_ERROR(PublishParent(life_->directory(), epoch, *parent));
  }
  return OkStatus();
}

Status Mirror::BringTags(const RunDirectory& run, const Listing& listing, const RunDirectory& there,
                         const Listing& copies) {
  CAIRN_ASSIGN_OR_RETURN(const auto tags, ReadTags(run));
  CAIRN_ASSIGN_OR_RETURN(const auto brought, ReadTags(there));
  std::map<std::string, std::string> wanted;
  for (const auto& [tag, checkpoint] : tags) {
    const Checkpoint* copy = FindCopy(copies, listing, checkpoint);
    if (copy != nullptr) wanted[tag] = copy->name;
  }
  for (const auto& [tag, checkpoint] : brought) {
    if (wanted.contains(tag)) continue;
    CAIRN_RETURN_IF_ERROR(Own(run));
    CAIRN_RETURN_IF_ERROR(RemoveTag(life_->directory(), tag));
  }
  for (const auto& [tag, checkpoint] : wanted) {
    if (const auto old = brought.find(tag); old != brought.end() && old->second == checkpoint) continue;
    CAIRN_RETURN_IF_ERROR(Own(run));
    CAIRN_RETURN_IF_ERROR(SetTag(life_->directory(), tag, checkpoint));
  }
  return OkStatus();
}

// 8.
Status Mirror::BringMarks(const RunDirectory& run, const Listing& listing, const RunDirectory& there) {
  CAIRN_RETURN_IF_ERROR(BringParents(run, there, Which::kAll));
  CAIRN_ASSIGN_OR_RETURN(const Listing copies, ListCheckpoints(there));
  CAIRN_RETURN_IF_ERROR(BringTags(run, listing, there, copies));
  CAIRN_ASSIGN_OR_RETURN(const bool finished, IsFinished(run, listing));
  CAIRN_ASSIGN_OR_RETURN(const bool told, IsFinished(there, copies));
  if (!finished || told) return OkStatus();
  const Checkpoint* last = FindCopy(copies, Candidates(listing).front());
  if (last == nullptr) return OkStatus();
  CAIRN_RETURN_IF_ERROR(Own(run));
  return WriteFinished(life_->directory(), last->name);
}

// 9.
Status Mirror::Prune(const RunDirectory& run, const RunDirectory& there) {
  if (!options_.keep) return OkStatus();
  CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(there));
  CAIRN_ASSIGN_OR_RETURN(std::set<std::string> kept,
                         KeptByMarks(there, leases_, std::chrono::steady_clock::now()));
  kept.insert(fresh_.begin(), fresh_.end());
  for (const std::string& name : PlanRetention(listing, 0, "", *options_.keep, kept)) {
    CAIRN_RETURN_IF_ERROR(Own(run));
    CAIRN_RETURN_IF_ERROR(PruneCheckpoint(there, life_->epoch(), name));
  }
  return OkStatus();
}

}  // namespace cairn
