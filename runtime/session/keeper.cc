#include "runtime/session/keeper.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/catalog/marks.h"
#include "runtime/catalog/program.h"
#include "runtime/formats/names.h"
#include "runtime/formats/sums.h"
#include "runtime/io/random.h"
#include "runtime/session/assembly.h"
#include "runtime/session/directory_room.h"
#include "runtime/session/metrics.h"
#include "runtime/session/outputs.h"
#include "runtime/session/starting_point.h"
#include "runtime/staging/memory_room.h"
#include "runtime/version.h"

namespace cairn {

Status CheckMerged(const Blobs& blobs, uint64_t most) {
  uint64_t bytes = 0;
  for (const BlobItem& blob : blobs.items) {
    if (blob.policy != BlobPolicy::kMerge) continue;
    for (const auto& of_rank : blob.by_rank) bytes += of_rank ? of_rank->size() : 0;
  }
  if (bytes <= most) return OkStatus();
  return {Code::kInvalid, "the blobs of CAIRN_BLOB_MERGE have " + FormatBytes(bytes) +
                              " on all ranks together, of which a restore gives each rank all: at most " +
                              FormatBytes(most) + "; keep in arrays what is large"};
}

Keeper::Keeper(const Bootstrap& boot, std::string session, Links links)
    : boot_(boot), session_(std::move(session)), links_(std::move(links)), claim_(RandomHex(16)) {}

// What --checkpoint-from names, where there is no run yet that it could be too late for.
Result<std::optional<Origin>> Keeper::OriginOfNewRun() const {
  const Settings& settings = boot_.settings;
  const bool start_over = settings.resume == Resume::kNever && boot_.first_life;
  if (settings.from.empty() || start_over || RunDirectory::OpenExisting(settings.dir).ok())
    return std::optional<Origin>();
  CAIRN_ASSIGN_OR_RETURN(Origin origin, FindOrigin(settings.from));
  return std::optional<Origin>(std::move(origin));
}

Status Keeper::Own() {
  if (life_) return OkStatus();
  LifeOptions options;
  options.dir = boot_.settings.dir;
  options.name = session_;
  options.mode = boot_.settings.mode;
  CAIRN_ASSIGN_OR_RETURN(options.origin, OriginOfNewRun());
  options.self = boot_.identity;
  options.self.claim = claim_;
  options.ask_slurm = links_.ask_slurm;
  options.say = [this](const std::string& line) { links_.log->Info(line); };
  CAIRN_ASSIGN_OR_RETURN(life_, Life::Begin(options));
  directory_ = life_->directory();
  if (!boot_.rendezvous.empty()) {
    const Status written = WriteControlFile(boot_.settings.dir, Control());
    if (!written.ok())
      links_.log->Warn("`cairn save` and `cairn status` will not reach this job: ", written.message());
  }
  const Program program = ReadProgram();
  std::string arguments;
  for (const std::string& argument : program.arguments)
    arguments += (arguments.empty() ? "" : ",") + Quote(argument);
  Journal("life", {{"job", Quote(boot_.identity.job)},
                   {"step", Quote(boot_.identity.step)},
                   {"restart", std::to_string(boot_.identity.restart)},
                   {"node", Quote(boot_.identity.node)},
                   {"world_size", std::to_string(boot_.world_size)},
                   {"run_life", Quote(boot_.run_life)},
                   {"nodes", Quote(boot_.nodes)},
                   {"program", Quote(program.path)},
                   {"program_hash", Quote(program.hash)},
                   {"arguments", "[" + arguments + "]"}});
  return OkStatus();
}

ControlPoint Keeper::Control() const {
  return {boot_.rendezvous, boot_.key, session_, boot_.token.ControlKey()};
}

std::optional<uint32_t> Keeper::epoch() const { return life_ ? std::optional(life_->epoch()) : std::nullopt; }

Opened Keeper::Open() {
  const std::string& dir = boot_.settings.dir;
  const bool there = RunDirectory::OpenExisting(dir).ok();
  const Status owned = Own();
  if (owned.ok()) {
    if (!there && !boot_.first_life) {
      links_.log->Warn("this job was restarted, yet ", dir,
                       " held no run. If an earlier life saved there, stop this job: a mount may be missing");
    }
    links_.log->Info("protected: ", dir, ", life ", life_->epoch(), ", ", boot_.world_size,
                     boot_.world_size == 1 ? " rank" : " ranks");
    if (life_->directory().in_bucket()) {
      links_.log->Info(
          dir,
          " is a bucket: there nobody can tell how much room is left, and a rank whose state does not fit "
          "into memory a second time cannot be saved");
    }
    return {OkStatus(), life_->epoch(), claim_};
  }
  const bool other_life = owned.code() == Code::kBusy || owned.code() == Code::kFenced;
  const bool told_where_to_begin = !there && !boot_.settings.from.empty();
  if (other_life || boot_.settings.require || told_where_to_begin) return {owned, 0};
  auto existing = RunDirectory::OpenExisting(dir);
  if (existing.ok()) {
    directory_ = *std::move(existing);
  } else if (existing.status().code() != Code::kNotFound) {
    // Whether checkpoints are at stake cannot be told: running on might start the run afresh.
    return {existing.status().Annotate("the run's directory cannot be read, so it is not known whether there "
                                       "is something to resume; cure "
                                       "that, or give another --checkpoint-dir"),
            0};
  }
  links_.log->Warn("NOT PROTECTED for now: ", owned.message(),
                   ". The job goes on; every save will try again");
  return {OkStatus(), 0, claim_};
}

// Before the first save can fail for it.
void Keeper::CompareRoom() const {
  SaveNeeds needs;
  for (const ShardRecord& file : described_->files) {
    needs.bytes += file.bytes + EncodedSumsBytes(file.bytes);
    needs.files += 2;
  }
  needs.files += 4;  // folder, index, blobs, manifest
  for (const KeepRule& rule : boot_.settings.keep) {
    if (rule.kind == KeepRule::kLast || rule.kind == KeepRule::kBest)
      needs.saves += static_cast<uint64_t>(rule.number);
  }
  if (const auto listing = ListCheckpoints(life_->directory()); listing.ok())
    needs.saves -= std::min<uint64_t>(needs.saves - 1, Candidates(*listing).size());
  const std::string missing = WhatIsMissing(ReadDirectoryRoom(life_->directory().path()), needs);
  if (!missing.empty()) links_.log->Warn(life_->directory().path(), ": ", missing);
}

// Once it is published this life may save.
Status Keeper::PublishParent() {
  if (parent_published_) return OkStatus();
  CAIRN_RETURN_IF_ERROR(cairn::PublishParent(life_->directory(), life_->epoch(), *parent_));
  parent_published_ = true;
  CompareRoom();
  return OkStatus();
}

void Keeper::GoOnFrom(Beginning beginning) {
  state_ = std::move(beginning.state);
  described_ = std::move(beginning.index);
  newest_ = std::move(beginning.checkpoint);
  parent_ = std::move(beginning.parent);
  if (!life_) return;
  const Status published = PublishParent();
  if (!published.ok())
    links_.log->Warn("NOT PROTECTED for now: ", published.message(),
                     ". The job goes on; every save will try again");
}

void Keeper::SaveAs(State state, Index index) {
  state_ = std::move(state);
  described_ = std::move(index);
}

std::optional<int64_t> Keeper::BeginOfLifeBefore() const {
  if (!life_ || boot_.first_life || life_->epoch() < 2) return std::nullopt;
  const auto parent = ReadParent(life_->directory(), life_->epoch() - 1);
  if (!parent.ok() || !*parent) return std::nullopt;
  const auto attempt = names::ParseAttempt(**parent);
  return attempt ? attempt->step : 0;
}

// Between the start and now the directory was out of reach. What is in it may be older than what this life began from, or newer: to go on
// from there would make orphans of good checkpoints.
Status Keeper::OwnLate() {
  CAIRN_RETURN_IF_ERROR(Own());
  const auto listing = ListCheckpoints(life_->directory());
  const auto candidates = listing.ok() ? Candidates(*listing) : std::vector<Checkpoint>();
  const std::string newest = candidates.empty() ? "" : candidates.front().name;
  if (listing.ok() && newest == *parent_) return PublishParent();
  (void)life_->End();
  life_.reset();
  CAIRN_RETURN_IF_ERROR(listing.status());
  too_late_ = {Code::kBusy, boot_.settings.dir + " holds " + newest +
                                ", which this job did not begin from, since the directory could not be used "
                                "then. This life is not saved; to resume from there, submit the job again"};
  return too_late_;
}

Result<std::string> Keeper::Prepare(int64_t step) {
  CAIRN_RETURN_IF_ERROR(too_late_);
  if (!life_) CAIRN_RETURN_IF_ERROR(OwnLate());
  CAIRN_ASSIGN_OR_RETURN(attempt_, BeginAttempt(life_->directory(), life_->epoch(), step));
  return attempt_->path;
}

Result<Published> Keeper::Publish(Index index, const std::vector<MemberRecord>& records, const State& state,
                                  Manifest manifest) {
  if (!attempt_) return Status(Code::kCancelled, "the attempt has been given up");
  std::set<std::string> metrics_left_out;
  CAIRN_ASSIGN_OR_RETURN(const Blobs blobs, Assemble(records, state, &index, &manifest, &metrics_left_out));
  if (!metrics_left_out.empty() && !std::exchange(said_metrics_left_out_, true)) {
    links_.log->Warn("the ranks give more than ", kMaxMergedMetrics,
                     " different metrics: ", metrics_left_out.size(),
                     " of the highest ranks are not in the manifest, and no rule of --checkpoint-keep sees "
                     "them. Give them the same names on all ranks, or from one rank alone");
  }
  CAIRN_RETURN_IF_ERROR(CheckMerged(blobs));
  manifest.cairn_version = kVersion;
  manifest.settings = boot_.settings.given;
  CAIRN_ASSIGN_OR_RETURN(manifest,
                         cairn::Commit(life_->directory(), *attempt_, index, blobs, std::move(manifest)));
  Published published{attempt_->name.ToString(), std::move(manifest)};
  attempt_.reset();
  return published;
}

Result<SaveReport> Keeper::Commit(const agreement::Commit& save,
                                  std::chrono::steady_clock::time_point asked) {
  SaveReport report;
  std::vector<MemberRecord> records;
  for (const std::string& bytes : save.records) {
    CAIRN_ASSIGN_OR_RETURN(MemberRecord record, DecodeSessionMessage<MemberRecord>(bytes));
    report.stall_ns = std::max(report.stall_ns, record.stall_ns);
    report.drain_ns = std::max(report.drain_ns, record.drain_ns);
    report.hurried_stall_ns = std::max(report.hurried_stall_ns, record.hurried_stall_ns);
    report.hurried_drain_ns = std::max(report.hurried_drain_ns, record.hurried_drain_ns);
    records.push_back(std::move(record));
  }
  std::vector<int32_t> slot_of;  // by writer, as its first rank says
  for (size_t rank = 0; rank < state_.writer_of.size(); ++rank) {
    const uint32_t writer = state_.writer_of[rank];
    if (writer == slot_of.size()) slot_of.push_back(records[rank].slot);
    if (slot_of[writer] != records[rank].slot)
      return Status(Code::kInternal, "rank " + std::to_string(rank) +
                                         " has filled another slot than the ranks that it writes files with");
  }
  Manifest manifest;
  manifest.label = save.label;
  manifest.trigger = TriggerName(save.reason);
  manifest.parent = parent_.value_or("");
  manifest.tag = save.tags.empty() ? "" : save.tags.front();
  CAIRN_ASSIGN_OR_RETURN(Published published, Publish(*described_, records, state_, std::move(manifest)));
  newest_ = std::move(published.name);
  manifest = std::move(published.manifest);
  for (const std::string& tag : save.tags) {
    const Status tagged = SetTag(life_->directory(), tag, newest_);
    if (!tagged.ok())
      links_.log->Warn("tag \"", tag, "\" could not be set on ", newest_, ": ", tagged.message());
  }
  report.name = newest_;
  report.trigger = manifest.trigger;
  report.step = manifest.step;
  report.label = manifest.label;
  report.bytes = manifest.total_bytes;
  report.durable_ns = Nanoseconds(std::chrono::steady_clock::now() - asked).count();
  return report;
}

void Keeper::JournalSaved(const SaveReport& report) {
  Journal("saved", {{"checkpoint", Quote(report.name)},
                    {"step", std::to_string(report.step)},
                    {"label", std::to_string(report.label)},
                    {"trigger", Quote(report.trigger)},
                    {"bytes", std::to_string(report.bytes)},
                    {"stall_ns", std::to_string(report.stall_ns)},
                    {"drain_ns", std::to_string(report.drain_ns)},
                    {"durable_ns", std::to_string(report.durable_ns)}});
}

Status Keeper::Finish() {
  if (!life_) return {Code::kUnavailable, "the directory could not be owned"};
  if (newest_.empty()) return OkStatus();  // nothing was ever saved: there is no last state to name
  CAIRN_RETURN_IF_ERROR(StillNewest(life_->directory(), life_->epoch()));
  CAIRN_RETURN_IF_ERROR(WriteFinished(life_->directory(), newest_));
  Journal("finished", {{"checkpoint", Quote(newest_)}});
  return OkStatus();
}

void Keeper::Abandon() {
  if (!attempt_) return;
  const Status removed = cairn::Abandon(life_->directory(), *attempt_);
  if (!removed.ok())
    links_.log->Debug("the attempt ", attempt_->name.ToString(),
                      " is left to the next life: ", removed.message());
  attempt_.reset();
}

void Keeper::Prune() {
  const auto prune = [this]() -> Status {
    const RunDirectory& dir = life_->directory();
    CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(dir));
    CAIRN_ASSIGN_OR_RETURN(const std::set<std::string> kept,
                           KeptByMarks(dir, leases_, std::chrono::steady_clock::now()));
    for (const std::string& name :
         PlanRetention(listing, life_->epoch(), *parent_, boot_.settings.keep, kept)) {
      CAIRN_RETURN_IF_ERROR(PruneCheckpoint(dir, life_->epoch(), name));
      links_.log->Debug("pruned ", name);
      Journal("pruned", {{"checkpoint", Quote(name)}});
    }
    return OkStatus();
  };
  const Status pruned = prune();
  if (!pruned.ok()) links_.log->Warn("older checkpoints were not pruned: ", pruned.message());
}

void Keeper::Close() {
  Abandon();
  too_late_ = {Code::kCancelled, "rank 0 is leaving"};
  if (!life_) return;
  RemoveControlFile(boot_.settings.dir, Control());
  const Status left = life_->End();
  if (!left.ok()) links_.log->Debug("the directory was left without a word: ", left.message());
}

void Keeper::Journal(std::string_view event, const Fields& fields) {
  if (!directory_) return;
  const Status written = AppendEvent(*directory_, event, epoch().value_or(0), fields);
  if (!written.ok()) links_.log->Debug("the journal was not written: ", written.message());
}

}  // namespace cairn
