#include "runtime/session/saver.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <unordered_map>

#include "planner/save_plan.h"
#include "runtime/session/durable_place.h"
#include "runtime/staging/memory_room.h"
#include "runtime/staging/memory_slot.h"

namespace cairn {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Where they cannot be pinned, the driver copies by way of memory of its own, and the log has a line of it.
Device::Pins PinImages(const Device& device, const ImagePlan& images, Staging& staging) {
  Device::Pins pins(device);
  const std::vector<Image>& files = images.shared.empty() ? images.images : images.shared;
  for (int s = 0; s < staging.pool.size(); ++s) {
    for (size_t i = 0; i < files.size(); ++i) {
      std::byte* const image = staging.pool.slot(s).image(i);
      if (image == nullptr) continue;  // it writes through
      const Status pinned = pins.Add({image, files[i].size_bytes});
      if (pinned.ok()) continue;
      staging.notes.push_back("copies from the device are slower than they could be: " + pinned.message());
      return pins;
    }
  }
  return pins;
}

}  // namespace

// Of the boundary's mutex: all but what Copy and Drain use, which nobody else touches meanwhile.
struct Saver::Save {
  SnapshotId id;
  Slot* slot = nullptr;
  std::unique_ptr<DrainControl> control;  // of the copy that writes through, then of the drain
  int64_t stall_ns = 0, stall_held_back_ns = 0;
  int64_t drain_began_ns = 0;
  bool complete = false;  // the pool knows that all members have staged
  enum class DrainState { kNone, kQueued, kRunning } drain = DrainState::kNone;
  bool copying = false;          // the partner's copy reads the slot
  std::optional<Worth> settled;  // the save has ended
  int64_t settled_ns = 0;
};

Result<std::unique_ptr<Saver>> Saver::Make(const Options& options, const State& state, const Items& items) {
  CAIRN_ASSIGN_OR_RETURN(const Writers writers, Writers::Make(state.layout, state.writer_of));
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(writers.layout()));
  CAIRN_ASSIGN_OR_RETURN(ImagePlan images, PlanImages(writers, plan, options.rank));
  const auto ranks_of_writer = static_cast<int>(writers.RanksOf(writers.Of(options.rank)).size());
  std::unordered_map<std::string, size_t> by_name;
  for (size_t i = 0; i < items.arrays().size(); ++i) by_name.emplace(items.arrays()[i].spec.name, i);
  std::vector<std::pair<size_t, size_t>> pieces;
  std::vector<Dims> strides;
  DevicePieces devices{.device = items.device()};
  for (const Piece& piece : PiecesOf(state.layout, options.rank)) {
    const size_t array = by_name.at(state.layout.arrays[piece.array].name);
    const size_t registered = items.arrays()[array].PieceAt(piece.ordinal);
    pieces.emplace_back(array, registered);
    strides.push_back(items.arrays()[array].pieces[registered].stride_bytes);
    devices.on_device.push_back(items.arrays()[array].device);
    devices.late.push_back(items.arrays()[array].late);
  }
  CAIRN_ASSIGN_OR_RETURN(SnapshotPlan snapshot,
                         SnapshotPlan::Make(images, strides, options.copy_threads, devices));
  StagingOptions staging_options;
  staging_options.tier = options.tier;
  staging_options.ranks_on_node = options.ranks_on_node;
  staging_options.room = [ranks = options.ranks_on_node] { return ReadMemoryRoom(ranks); };
  staging_options.limit_bytes = options.local_limit;
  staging_options.write_through = {.run_directory = options.run_directory,
                                   .claim = options.claim,
                                   .rank = options.rank,
                                   .mode = options.mode,
                                   .writer = options.writer,
                                   .bytes_per_second = options.drain_limit};
  staging_options.ranks_of_writer = ranks_of_writer;
  staging_options.shared_folder = options.shared_folder;
  CAIRN_ASSIGN_OR_RETURN(Staging staging, Staging::Make(staging_options, images));
  std::optional<Device::Pins> pins;
  if (snapshot.copies_from_devices()) pins.emplace(PinImages(*items.device(), images, staging));
  RecordShape shape{options.run_id, {}};
  for (const RegisteredBlob& blob : items.blobs()) shape.blobs.push_back({blob.name, blob.capacity});
  shape.blobs.push_back({kMetricsBlob, kMaxMetricsBytes});  // after the items' own
  shape.blobs.push_back({std::string(kOutputsBlob), items.outputs().max_bytes()});
  std::vector<Record> records;
  for (int slot = 0; slot < staging.pool.size(); ++slot) {
    CAIRN_ASSIGN_OR_RETURN(
        Mapping memory, staging.tier.Map("slot" + std::to_string(slot) + ".record",
                                         SlotRecord::BytesFor(shape), [](uint64_t) { return OkStatus(); }));
    const SlotRecord record(memory.data(), shape);
    records.push_back({std::move(memory), record});
  }
  if (options.keeps_layout) {
    CAIRN_RETURN_IF_ERROR(staging.tier.Write(kLayoutFile, EncodeLayoutFile(EncodeState(state))));
    CAIRN_ASSIGN_OR_RETURN(
        const std::string destination,
        EncodeDurablePlace({options.run_directory, options.mode, CurrentUmask(), options.settings}));
    CAIRN_RETURN_IF_ERROR(staging.tier.Write(kDestinationFile, destination));
  }
  Options own = options;
  own.drain_limit *= static_cast<uint64_t>(ranks_of_writer);  // the first of a writer's ranks writes for all
  return std::unique_ptr<Saver>(new Saver(std::move(own), ranks_of_writer == 1, items, std::move(staging),
                                          std::move(images), std::move(snapshot), std::move(records),
                                          LayoutHash(state.layout, state.writer_of), state.layout.world_size,
                                          std::move(pieces), std::move(pins)));
}

Saver::Saver(Options options, bool alone, const Items& items, Staging staging, ImagePlan images,
             SnapshotPlan snapshot, std::vector<Record> records, Hash128 layout, uint32_t world_size,
             std::vector<std::pair<size_t, size_t>> pieces, std::optional<Device::Pins> pins)
    : options_(std::move(options)),
      alone_(alone),
      items_(items),
      staging_(std::move(staging)),
      pins_(std::move(pins)),
      images_(std::move(images)),
      snapshot_(std::move(snapshot)),
      layout_(layout),
      world_size_(world_size),
      pieces_(std::move(pieces)),
      pointers_(pieces_.size()),
      records_(std::move(records)) {}

Saver::~Saver() {
  if (only_here_ || (current_ && current_->complete)) staging_.tier.Keep();
}

Status Saver::Acquire(uint64_t save_id, int64_t boundary) {
  if (busy()) return {Code::kBusy, "the files of the save before are still being written"};
  const SnapshotId id{options_.epoch, save_id,       static_cast<uint64_t>(boundary),
                      layout_,        options_.rank, world_size_};
  Slot* slot = staging_.pool.Acquire(id);
  if (slot == nullptr) return {Code::kBusy, "no staging slot is free"};
  current_ = std::make_unique<Save>();
  current_->id = id;
  current_->slot = slot;
  current_->control = NewControl();
  return OkStatus();
}

// Hurried from the start where all are.
std::unique_ptr<DrainControl> Saver::NewControl() const {
  auto control = std::make_unique<DrainControl>();
  if (hurried_) control->Hurry();
  return control;
}

const SlotRecord& Saver::RecordOf(const Save& save) const {
  return records_[static_cast<size_t>(save.slot->number())].record;
}

bool Saver::busy() const {
  return current_ || left_.size() == static_cast<size_t>(staging_.pool.size()) || (!alone_ && !left_.empty());
}

std::optional<int64_t> Saver::stuck(std::chrono::nanoseconds patience) const {
  for (const auto& save : left_) {
    if (NowNs() - save->settled_ns > patience.count()) return static_cast<int64_t>(save->id.boundary);
  }
  return std::nullopt;
}

Status Saver::HaveMemory() const {
  const auto gone = [](const std::string& name) {
    return Status(Code::kUnavailable, "item \"" + name + "\" has no memory: the program has taken it back");
  };
  for (const RegisteredArray& array : items_.arrays()) {
    for (const LocalPiece& piece : array.pieces) {
      if (piece.data == nullptr && !piece.box.empty()) return gone(array.spec.name);
    }
  }
  for (const RegisteredBlob& blob : items_.blobs()) {
    if (blob.data == nullptr && blob.bytes() > 0) return gone(blob.name);
  }
  return OkStatus();
}

Status Saver::Copy(const SnapshotStamp& stamp, std::string_view metrics) {
  const int64_t begin = NowNs();
  CAIRN_RETURN_IF_ERROR(HaveMemory());
  CAIRN_RETURN_IF_ERROR(items_.MarkTables());
  for (size_t i = 0; i < pieces_.size(); ++i)
    pointers_[i] = items_.arrays()[pieces_[i].first].pieces[pieces_[i].second].data;
  const SlotRecord& record = RecordOf(*current_);
  record.Stamp(stamp);
  for (size_t i = 0; i < items_.blobs().size(); ++i) {
    const RegisteredBlob& blob = items_.blobs()[i];
    record.StoreBlob(i, blob.data, blob.bytes());
  }
  record.StoreBlob(items_.blobs().size(), reinterpret_cast<const std::byte*>(metrics.data()), metrics.size());
  const std::string outputs = items_.outputs().Measure();
  record.StoreBlob(items_.blobs().size() + 1, reinterpret_cast<const std::byte*>(outputs.data()),
                   outputs.size());
  Status status = current_->slot->Fill(images_, snapshot_, pointers_.data(), *current_->control);
  current_->stall_ns = NowNs() - begin;
  current_->stall_held_back_ns = current_->control->held_back().count();
  return status;
}

Status Saver::FinishCopy() { return current_->slot->Finish(snapshot_); }

int Saver::BeginDrain() {
  staging_.pool.Complete(current_->slot);
  staging_.pool.BeginDrain(current_->slot);
  current_->complete = true;
  current_->drain = Save::DrainState::kQueued;
  current_->drain_began_ns = NowNs();
  pace_from_ = {current_->control->bytes_written(), current_->drain_began_ns};
  return current_->slot->number();
}

Saver::Save* Saver::EnterDrain(uint64_t save_id) {
  if (!current_ || current_->id.save_id != save_id || current_->drain != Save::DrainState::kQueued)
    return nullptr;
  current_->drain = Save::DrainState::kRunning;
  return current_.get();
}

Result<MemberRecord> Saver::Drain(Save& save, const std::string& directory) {
  MemberRecord record;
  DrainOptions options{
      .directory = directory, .mode = options_.mode, .bytes_per_second = options_.drain_limit};
  options.make_engine = [this] { return MakeWriteEngine(options_.writer); };
  CAIRN_ASSIGN_OR_RETURN(record.shards, save.slot->Drain(images_, options, *save.control));
  record.slot = save.slot->number();
  const SlotRecord& staged = RecordOf(save);
  for (size_t i = 0; i < items_.blobs().size(); ++i)
    record.blobs.emplace(items_.blobs()[i].name, staged.blob(i));
  record.blobs.emplace(kMetricsBlob, staged.blob(items_.blobs().size()));
  record.blobs.emplace(kOutputsBlob, staged.blob(items_.blobs().size() + 1));
  items_.outputs().Sync();
  record.stall_ns = save.stall_ns;
  record.drain_ns = NowNs() - save.drain_began_ns;
  record.hurried_stall_ns = save.stall_ns - save.stall_held_back_ns;
  record.hurried_drain_ns = record.drain_ns - (save.control->held_back().count() - save.stall_held_back_ns);
  return record;
}

void Saver::DrainEnded(Save& save) {
  save.drain = Save::DrainState::kNone;
  staging_.pool.EndDrain(save.slot);
  if (current_.get() == &save) return LeaveIfSettled();
  Free(save);
  std::erase_if(left_, [&](const auto& left) { return left.get() == &save; });
}

Result<PartnerSlots> Saver::MakePartnerSlots(
    const Layout& layout, const std::vector<uint32_t>& wards,
    std::function<void(uint32_t ward, uint64_t save_id)> held) const {
  if (staging_.tier.anonymous()) return Status(Code::kUnavailable, "images live in anonymous memory here");
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(layout));
  uint64_t allowed = UINT64_MAX;  // of this rank's part of the limit, after its own slots
  if (options_.local_limit > 0) {
    const uint64_t part = options_.local_limit / static_cast<uint64_t>(std::max(options_.ranks_on_node, 1));
    const uint64_t own = static_cast<uint64_t>(staging_.pool.size()) * MemorySlot::BytesFor(images_);
    allowed = part - std::min(part, own);
  }
  const auto may_take = [this, allowed](uint64_t bytes) mutable {
    const uint64_t room =
        WithoutHeadRoom(std::min(ReadMemoryRoom(options_.ranks_on_node).bytes, staging_.tier.FreeBytes()));
    const uint64_t left = std::min(room, allowed);
    if (bytes > left) {
      return Status(Code::kOutOfMemory,
                    "no room for the snapshots of ranks of another node: " + FormatBytes(left) +
                        " are left on this one" + (allowed < room ? " by CAIRN_LOCAL_LIMIT" : ""));
    }
    if (allowed != UINT64_MAX) allowed -= bytes;
    return OkStatus();
  };
  return PartnerSlots::Make(staging_.tier, layout, plan, wards, may_take, std::move(held));
}

OutgoingCopy Saver::BeginPartnerCopy() {
  current_->copying = true;
  OutgoingCopy copy{.id = current_->id};
  for (size_t i = 0; i < images_.images.size(); ++i)
    copy.images.emplace_back(current_->slot->image(i), images_.images[i].size_bytes);
  const Mapping& memory = records_[static_cast<size_t>(current_->slot->number())].memory;
  copy.record = {memory.data(), memory.size_bytes()};
  return copy;
}

void Saver::PartnerCopyEnded() {
  current_->copying = false;
  LeaveIfSettled();
}

void Saver::Settle(uint64_t save_id, Worth worth) {
  if (!current_ || current_->id.save_id != save_id) return;
  current_->settled = worth;
  current_->settled_ns = NowNs();
  if (worth != Worth::kNone) only_here_ = worth == Worth::kLocal;
  Cancel();
  LeaveIfSettled();
}

void Saver::Cancel() {
  if (current_) current_->control->Cancel();
}

void Saver::Hurry() {
  const bool first = !std::exchange(hurried_, true);
  if (!current_) return;
  if (first) pace_from_ = {current_->control->bytes_written(), NowNs()};
  current_->control->Hurry();
}

std::optional<DrainSeen> Saver::seen() const {
  if (!current_ || current_->drain == Save::DrainState::kNone) return std::nullopt;
  const uint64_t written = current_->control->bytes_written();
  const int64_t elapsed_ns = NowNs() - pace_from_.at_ns;
  return DrainSeen{.save_id = current_->id.save_id,
                   .bytes = images_.bytes,
                   .written = written,
                   .bytes_per_second = elapsed_ns > 0
                                           ? 1e9 * static_cast<double>(written - pace_from_.written) /
                                                 static_cast<double>(elapsed_ns)
                                           : 0,
                   .writer = std::string(current_->control->writer())};
}

// A partner's copy keeps the save here: it can be given up, which a write cannot.
void Saver::LeaveIfSettled() {
  if (!current_->settled || current_->copying) return;
  if (current_->drain == Save::DrainState::kRunning) {
    left_.push_back(std::move(current_));
    return;
  }
  staging_.pool.EndDrain(current_->slot);  // nobody will come to it any more
  Free(*current_);
  current_.reset();
}

void Saver::Free(const Save& save) {
  if (*save.settled == Worth::kNone) {
    staging_.pool.Release(save.slot);
  } else if (!save.complete) {
    staging_.pool.Complete(save.slot);
  }
}

}  // namespace cairn
