#include "runtime/session/left_drain.h"

#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "planner/save_plan.h"
#include "runtime/catalog/beat.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/commit.h"
#include "runtime/catalog/epoch.h"
#include "runtime/catalog/event.h"
#include "runtime/formats/names.h"
#include "runtime/formats/sealed_bytes.h"
#include "runtime/io/random.h"
#include "runtime/io/thread.h"
#include "runtime/session/assembly.h"
#include "runtime/session/durable_place.h"
#include "runtime/session/local_snapshot.h"
#include "runtime/session/partner.h"
#include "runtime/session/rescue.h"
#include "runtime/staging/leftovers.h"
#include "runtime/version.h"

// The nodes of a dead life cannot talk to each other: there is no process left that knows the others. They meet in the run's directory. What each
// needs lies beside its images since the life began or since they were staged: the layout, the directory (durable_place.h), and in each slot's record the
// run, the label, blobs, metrics and outputs.
//
//   1. A node lists its own slots of dead ranks (leftovers.h), without copies of other nodes': these may be older or newer than what their owners
//      have. A directory whose newest epoch is not that of the slots belongs to another life: nothing is done.
//   2. It publishes what it has as left-<epoch>/<job>.<node>, all at once.
//   3. It reads what the others have published until a save is complete (local_snapshot.h) that is newer than what this epoch has committed. Since
//      each told all that it has, and a complete save needs all nodes of the life, all of them find the same one. When none is complete in time it
//      gives up: the life did not stage it everywhere, or a node is lost.
//   4. From here on it raises a counter, left-<epoch>/<job>.<node>.alive: a life that begins waits while one moves (life.cc), then uses what came
//      of it.
//   5. The attempt's name is made of epoch, step and layout, so all nodes make the same folder. For each rank a node writes shards and checksums
//      in .draining-<random> below it, fsyncs them, renames each into the attempt, fsyncs that, and then publishes the rank's record as
//      .drained/<rank>. A second process that does the same renames equal files over equal files.
//   6. When the records of all ranks are there and are of the one save, a node reads the fence and commits (commit.cc, kSeveral). Who finds them
//      all is whoever was last, or several: one manifest is the first, the others find it.
//   7. .drained, .draining-* and left-<epoch> are removed.
//
// A kill before the manifest leaves an attempt without one, which the next life removes (epoch.cc); one after it leaves a checkpoint with a few
// names too many. Slots are never written to by this but for their state HASHED; nothing of them is removed here.
//
// A new life that did not wait (its cluster's clock or file system hid the counters) claims a newer epoch, and renames the attempt. What is
// done with its old name from then on fails; a folder made anew under it is never committed, since step 6 reads the fence first. What was
// committed at the same moment the new life counts or not, as with any stale writer.

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kDrainedFolder = ".drained", kDrainingPrefix = ".draining-";
constexpr std::string_view kInventoryMagic = "CAIRNINV", kRecordMagic = "CAIRNMEM";
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr std::chrono::milliseconds kPoll{200};

// Beats while it lives, and cancels the drain when the time is over.
class Pulse {
 public:
  Pulse(BeatFile beat, Clock::time_point end, DrainControl& control)
      : beat_(std::move(beat)), thread_(StartThread("cairn-pulse", [this, end, &control] {
          std::unique_lock lock(mutex_);
          while (!changed_.wait_until(lock, std::min(end, Clock::now() + kBeatInterval),
                                      [this] { return ended_; })) {
            if (Clock::now() >= end) return control.Cancel();
            (void)beat_.Beat();
          }
        })) {}
  ~Pulse() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
    (void)beat_.Leave();
  }

 private:
  BeatFile beat_;  // the thread's, until that has ended
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

// One directory's drain on this node.
class Drainer {
 public:
  Drainer(const LeftDrainOptions& options, const Leftovers& leftovers, Clock::time_point end,
          DurablePlace destination, std::vector<LeftSlot> slots)
      : options_(options),
        leftovers_(leftovers),
        end_(end),
        destination_(std::move(destination)),
        slots_(std::move(slots)),
        epoch_(static_cast<uint32_t>(slots_.front().id.epoch)) {}

  // Nothing: there is nothing that is not durable.
  Result<std::optional<LeftDrained>> Run() {
    CAIRN_ASSIGN_OR_RETURN(dir_, RunDirectory::OpenExisting(destination_.dir, destination_.mode));
    if (dir_->in_bucket())
      return Status(Code::kUnavailable, dir_->path() + " is a bucket: images go there from a life alone");
    std::erase_if(slots_, [this](const LeftSlot& slot) { return slot.run_id != dir_->info().id; });
    if (slots_.empty()) return std::optional<LeftDrained>();
    CAIRN_RETURN_IF_ERROR(StillNewest(*dir_, epoch_));
    CAIRN_ASSIGN_OR_RETURN(const auto newest, NewestCommitted());
    const auto is_newer = [&](const LeftSlot& slot) {
      return !newest || static_cast<int64_t>(slot.id.boundary) > newest->id.step;
    };
    if (std::none_of(slots_.begin(), slots_.end(), is_newer)) return std::optional<LeftDrained>();
    CAIRN_RETURN_IF_ERROR(Tell());
    CAIRN_ASSIGN_OR_RETURN(const std::optional<LocalSnapshot> found, AwaitSnapshot());
    if (!found) return DurableMeanwhile();
    return Drain(*found);
  }

 private:
  std::string Meeting() const { return dir_->PathOf(names::LeftFolder(epoch_)); }
  std::string Self() const { return options_.tier.job + "." + options_.tier.node; }
  Status TooLate(const std::string& what) const {
    return {Code::kTimeout, dir_->path() + ": " + what + " within the time; the newest checkpoint stands"};
  }

  // Of this epoch.
  Result<std::optional<Checkpoint>> NewestCommitted() const {
    CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(*dir_));
    for (const Checkpoint& checkpoint : listing.checkpoints) {
      if (checkpoint.id.epoch == epoch_ && checkpoint.readable.ok()) return std::optional(checkpoint);
    }
    return std::optional<Checkpoint>();
  }

  Result<std::optional<LeftDrained>> DurableMeanwhile() const {
    CAIRN_ASSIGN_OR_RETURN(const auto newest, NewestCommitted());
    if (!newest) return std::optional<LeftDrained>();
    return std::optional(LeftDrained{dir_->path(), newest->id.step, newest->name, 0});
  }

  // Step 2.
  Status Tell() const {
    Inventory inventory{.node = Self(), .mpi = {}, .slots = slots_};
    CAIRN_RETURN_IF_ERROR(MakeDirectories(Meeting(), dir_->mode()));
    return PublishFile(Meeting() + "/" + Self(), SealBytes(kInventoryMagic, EncodeSessionMessage(inventory)),
                       dir_->mode());
  }

  std::vector<Inventory> Told() const {
    std::vector<Inventory> inventories;
    const auto names = ListDirectory(Meeting());
    if (!names.ok()) return inventories;
    for (const std::string& name : *names) {
      if (name.ends_with(names::kAliveSuffix) || name.starts_with(kTemporaryPrefix)) continue;
      const auto text = ReadAll(Meeting() + "/" + name, kMaxBytes);
      if (!text.ok()) continue;
      const auto content = UnsealBytes(kInventoryMagic, *text, name);
      if (!content.ok()) continue;
      auto inventory = DecodeSessionMessage<Inventory>(*content);
      if (!inventory.ok()) continue;
      inventory->node = name;  // whatever it says
      inventories.push_back(*std::move(inventory));
    }
    return inventories;
  }

  // Step 3. Nothing: what was to be made durable is.
  Result<std::optional<LocalSnapshot>> AwaitSnapshot() const {
    for (;;) {
      CAIRN_RETURN_IF_ERROR(StillNewest(*dir_, epoch_));
      CAIRN_ASSIGN_OR_RETURN(const auto newest, NewestCommitted());
      const auto wanted = [&](const LocalSnapshot& snapshot) {
        return snapshot.epoch == epoch_ && (!newest || snapshot.step > newest->id.step);
      };
      std::optional<LocalSnapshot> found = NewestLocal(Told(), dir_->info().id, wanted);
      if (found) return found;
      if (!ListDirectory(Meeting()).ok()) return found;  // another process of this node has ended it
      if (Clock::now() >= end_)
        return TooLate("no save of epoch " + std::to_string(epoch_) +
                       " was told to be complete by all nodes");
      std::this_thread::sleep_for(kPoll);
    }
  }

  // Steps 4 to 7.
  Result<std::optional<LeftDrained>> Drain(const LocalSnapshot& snapshot) {
    CAIRN_ASSIGN_OR_RETURN(const auto parent, ReadParent(*dir_, epoch_));
    if (!parent)
      return Status(Code::kDamage, dir_->path() + ": epoch " + std::to_string(epoch_) +
                                       " has not said from which checkpoint it went on");
    CAIRN_ASSIGN_OR_RETURN(const State state, Layout(snapshot));
    const std::string identity = dir_->info().id + "." + std::to_string(epoch_) + "." +
                                 std::to_string(snapshot.step) + "." + snapshot.layout.ToHex();
    Attempt attempt;
    attempt.owner = epoch_;
    attempt.name = {snapshot.step, epoch_, Hash128Of(identity).ToHex().substr(0, 8)};
    attempt.path = dir_->PathOf(attempt.name.ToString());

    DrainControl control;
    control.Hurry();
    LeftDrained drained{dir_->path(), snapshot.step, attempt.name.ToString(), 0};
    try {
      CAIRN_ASSIGN_OR_RETURN(
          BeatFile beat,
          BeatFile::Create(Meeting() + "/" + Self() + std::string(names::kAliveSuffix), dir_->mode()));
      const Pulse pulse(std::move(beat), end_, control);
      CAIRN_RETURN_IF_ERROR(StillNewest(*dir_, epoch_));
      CAIRN_RETURN_IF_ERROR(MakeDirectories(attempt.path + "/" + std::string(kDrainedFolder), dir_->mode()));
      const Status written = WriteOwn(snapshot, state, attempt.path, control, &drained.bytes);
      if (control.cancelled())
        return TooLate("the images of step " + std::to_string(snapshot.step) + " were not written");
      CAIRN_RETURN_IF_ERROR(written);
      CAIRN_RETURN_IF_ERROR(AwaitCommit(snapshot, state, attempt, *parent));
    } catch (const std::system_error& e) {
      return Status::FromErrno(e.code().value(), "start the thread cairn-pulse");
    }
    return std::optional(drained);
  }

  // From the folder of this node that has it.
  Result<State> Layout(const LocalSnapshot& snapshot) const {
    Status status(Code::kDamage, "this node has images of a save and not its layout");
    for (const LeftSlot& slot : slots_) {
      if (!slot.has_layout || slot.id.layout != snapshot.layout) continue;
      const auto text = leftovers_.ReadLayout(slot.folder);
      if (!text.ok()) {
        status = text.status();
        continue;
      }
      CAIRN_ASSIGN_OR_RETURN(State state, DecodeState(*text));
      if (LayoutHash(state.layout, state.writer_of) == snapshot.layout &&
          state.layout.world_size == snapshot.world_size)
        return state;
      status = {Code::kDamage, slot.folder + " holds the layout of another save"};
    }
    return status;
  }

  // Step 5.
  Status WriteOwn(const LocalSnapshot& snapshot, const State& state, const std::string& attempt,
                  DrainControl& control, uint64_t* bytes) const {
    CAIRN_ASSIGN_OR_RETURN(const Writers writers, Writers::Make(state.layout, state.writer_of));
    CAIRN_RETURN_IF_ERROR(CheckSlots(snapshot, writers));
    CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(writers.layout()));
    for (uint32_t rank = 0; rank < snapshot.world_size; ++rank) {
      const LocalHolder& holder = snapshot.holders[rank].front();
      if (holder.node != Self() || ReadRecord(attempt, rank).ok()) continue;
      CAIRN_ASSIGN_OR_RETURN(const ImagePlan images, PlanImages(writers, plan, rank));
      const std::string draining = attempt + "/" + std::string(kDrainingPrefix) + RandomHex(8);
      CAIRN_RETURN_IF_ERROR(MakeDirectories(draining, dir_->mode()));
      const Status written = WriteRank(holder.source, images, attempt, draining, control, bytes);
      (void)RemoveTree(draining);
      CAIRN_RETURN_IF_ERROR(written);
    }
    return OkStatus();
  }

  Status WriteRank(const RescueSource& source, const ImagePlan& images, const std::string& attempt,
                   const std::string& draining, DrainControl& control, uint64_t* bytes) const {
    CAIRN_ASSIGN_OR_RETURN(MemberRecord record, WriteLeft(source, draining, images, leftovers_, dir_->mode(),
                                                          options_.writer, control));
    for (const ShardRecord& shard : record.shards) {
      for (const std::string& name : {names::Shard(shard.number), names::Sums(shard.number)})
        CAIRN_RETURN_IF_ERROR(RenameDirectory(draining + "/" + name, attempt + "/" + name));
      *bytes += shard.bytes;
    }
    CAIRN_RETURN_IF_ERROR(SyncDirectory(attempt));
    return PublishFile(RecordPath(attempt, source.rank),
                       SealBytes(kRecordMagic, EncodeSessionMessage(record)), dir_->mode());
  }

  static std::string RecordPath(const std::string& attempt, uint32_t rank) {
    return attempt + "/" + std::string(kDrainedFolder) + "/" + std::to_string(rank);
  }

  static Result<MemberRecord> ReadRecord(const std::string& attempt, uint32_t rank) {
    const std::string path = RecordPath(attempt, rank);
    CAIRN_ASSIGN_OR_RETURN(const std::string text, ReadAll(path, kMaxBytes));
    CAIRN_ASSIGN_OR_RETURN(const std::string content, UnsealBytes(kRecordMagic, text, path));
    return DecodeSessionMessage<MemberRecord>(content);
  }

  // Step 6, by this node or another.
  Status AwaitCommit(const LocalSnapshot& snapshot, const State& state, const Attempt& attempt,
                     const std::string& parent) const {
    for (;;) {
      CAIRN_RETURN_IF_ERROR(StillNewest(*dir_, epoch_));
      if (LoadManifest(attempt.path).ok()) return OkStatus();
      std::vector<MemberRecord> records;
      for (uint32_t rank = 0; rank < snapshot.world_size; ++rank) {
        auto record = ReadRecord(attempt.path, rank);
        if (record.status().code() == Code::kDamage) return record.status();
        if (!record.ok()) break;
        records.push_back(*std::move(record));
      }
      if (records.size() == snapshot.world_size) return CommitAll(snapshot, state, attempt, parent, records);
      if (Clock::now() >= end_)
        return TooLate("not all nodes have written their images of step " + std::to_string(snapshot.step));
      std::this_thread::sleep_for(kPoll);
    }
  }

  Status CommitAll(const LocalSnapshot& snapshot, const State& state, const Attempt& attempt,
                   const std::string& parent, const std::vector<MemberRecord>& records) const {
    CAIRN_ASSIGN_OR_RETURN(const Writers writers, Writers::Make(state.layout, state.writer_of));
    CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(writers.layout()));
    CAIRN_ASSIGN_OR_RETURN(Index index, DescribeSave(writers.layout(), plan));
    Manifest manifest;
    manifest.label = snapshot.label;
    manifest.trigger = "epilog";
    manifest.parent = parent;
    manifest.cairn_version = kVersion;
    manifest.settings = destination_.settings;
    std::set<std::string> left_out;
    CAIRN_ASSIGN_OR_RETURN(const Blobs blobs, Assemble(records, state, &index, &manifest, &left_out));
    const auto committed = Commit(*dir_, attempt, index, blobs, std::move(manifest), Committers::kSeveral);
    if (committed.status().code() == Code::kExists) return OkStatus();
    CAIRN_RETURN_IF_ERROR(committed.status());
    (void)AppendEvent(*dir_, "drained", epoch_,
                      {{"checkpoint", JsonText(attempt.name.ToString())},
                       {"step", std::to_string(snapshot.step)},
                       {"label", std::to_string(snapshot.label)},
                       {"bytes", std::to_string(committed->total_bytes)}});
    Tidy(attempt.path);
    return OkStatus();
  }

  // Step 7.
  void Tidy(const std::string& attempt) const {
    if (const auto names = ListDirectory(attempt); names.ok()) {
      for (const std::string& name : *names) {
        if (name == kDrainedFolder || name.starts_with(kDrainingPrefix))
          (void)RemoveTree(attempt + "/" + name);
      }
    }
    (void)RemoveTree(Meeting());
  }

  const LeftDrainOptions& options_;
  const Leftovers& leftovers_;
  const Clock::time_point end_;
  const DurablePlace destination_;
  std::vector<LeftSlot> slots_;  // of one life, this node's own
  const uint32_t epoch_;
  std::optional<RunDirectory> dir_;
};

// The slots of the ranks that ran on this node, by where they were to become durable and epoch. Only some folders have the destination.
using Left = std::map<std::pair<std::string, uint64_t>, std::pair<DurablePlace, std::vector<LeftSlot>>>;

Left LeftHere(const Leftovers& leftovers) {
  const std::vector<LeftSlot> slots = leftovers.List();
  std::map<std::pair<std::string, uint64_t>, DurablePlace> of_life;  // by run and epoch
  for (const LeftSlot& slot : slots) {
    const std::pair life(slot.run_id, slot.id.epoch);
    if (of_life.contains(life)) continue;
    const auto text = leftovers.ReadDestination(slot.folder);
    if (!text.ok()) continue;
    auto destination = DecodeDurablePlace(*text);
    if (destination.ok()) of_life.emplace(life, *std::move(destination));
  }
  Left left;
  for (const LeftSlot& slot : slots) {
    const auto destination = of_life.find({slot.run_id, slot.id.epoch});
    if (destination == of_life.end() || slot.id.epoch == 0 || slot.id.epoch > UINT32_MAX ||
        slot.slot.starts_with(kPartnerSlot))
      continue;
    auto& [where, own] = left[{destination->second.dir, slot.id.epoch}];
    where = destination->second;
    own.push_back(slot);
  }
  return left;
}

}  // namespace

Result<std::vector<LeftDrained>> DrainLeft(const LeftDrainOptions& options) {
  const Clock::time_point end = Clock::now() + options.within;
  CAIRN_ASSIGN_OR_RETURN(const Leftovers leftovers, Leftovers::Open(options.tier));
  std::vector<LeftDrained> all;
  Status first_error;
  for (auto& [where, left] : LeftHere(leftovers)) {
    auto& [destination, slots] = left;
    const mode_t before = ::umask(static_cast<mode_t>(destination.umask));
    auto drained = Drainer(options, leftovers, end, destination, std::move(slots)).Run();
    ::umask(before);
    if (drained.ok()) {
      if (*drained) all.push_back(**std::move(drained));
    } else {
      options.say(drained.status().message());
      if (first_error.ok()) first_error = drained.status();
    }
  }
  if (!first_error.ok()) return first_error;
  return all;
}

}  // namespace cairn
