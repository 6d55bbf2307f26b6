#include "runtime/session/keeper.h"

#include <nlohmann/json.hpp>

#include "planner/save_plan.h"
#include "runtime/catalog/marks.h"
#include "runtime/formats/names.h"
#include "runtime/io/random.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/memory_room.h"
#include "runtime/version.h"

namespace cairn {
namespace {

using nlohmann::json;

// Members may come to cairn_restore far apart: one reads a mesh, another waits for it.
constexpr std::chrono::minutes kShareBound{30};
// A restore moves at the speed of the file system; a member that hangs is found by its heartbeat, not by this.
constexpr std::chrono::hours kLoadBound{24};

std::string Joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += "\n  " + line;
  return out;
}

Status Stop(Code code, std::string message) { return {code, std::move(message)}; }

}  // namespace

Keeper::Keeper(const Bootstrap& boot, std::string session, Links links)
    : boot_(boot), session_(std::move(session)), links_(std::move(links)), claim_(RandomHex(16)) {}

Status Keeper::Own() {
  if (life_) return OkStatus();
  LifeOptions options;
  options.dir = boot_.settings.dir;
  options.name = session_;
  options.mode = boot_.settings.mode;
  options.self = boot_.identity;
  options.self.claim = claim_;
  options.ask_slurm = links_.ask_slurm;
  options.say = [this](const std::string& line) { links_.log->Info(line); };
  CAIRN_ASSIGN_OR_RETURN(life_, Life::Begin(options));
  directory_ = life_->directory();
  if (!boot_.rendezvous.empty()) {
    const Status written = WriteControlFile(
        boot_.settings.dir, {boot_.rendezvous, boot_.key, session_, boot_.token.ControlKey()});
    if (!written.ok())
      links_.log->Warn("`cairn save` and `cairn status` will not reach this job: ", written.message());
  }
  Journal("life", {{"job", Quote(boot_.identity.job)},
                   {"step", Quote(boot_.identity.step)},
                   {"restart", std::to_string(boot_.identity.restart)},
                   {"node", Quote(boot_.identity.node)},
                   {"world_size", std::to_string(boot_.world_size)}});
  return OkStatus();
}

Opened Keeper::Open() {
  const std::string& dir = boot_.settings.dir;
  const bool there = RunDirectory::OpenExisting(dir).ok();
  const Status owned = Own();
  if (owned.ok()) {
    if (!there && !boot_.first_life) {
      links_.log->Warn("this job was restarted, yet ", dir,
                       " held no run. If an earlier life saved there, stop this job: a mount may be missing");
    }
    links_.log->Info("protected: ", dir, ", epoch ", life_->epoch(), ", ", boot_.world_size,
                     boot_.world_size == 1 ? " rank" : " ranks");
    return {OkStatus(), life_->epoch()};
  }
  if (owned.code() == Code::kBusy || boot_.settings.require) return {owned, 0};
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
  return {OkStatus(), 0};
}

Status Keeper::PublishParent() {
  if (!parent_ || parent_published_) return OkStatus();
  CAIRN_RETURN_IF_ERROR(cairn::PublishParent(life_->directory(), life_->epoch(), *parent_));
  parent_published_ = true;
  return OkStatus();
}

void Keeper::LookBack() {
  if (!life_ || boot_.first_life || life_->epoch() < 2) return;
  const auto parent = ReadParent(life_->directory(), life_->epoch() - 1);
  if (!parent.ok() || !*parent) return;
  const auto attempt = names::ParseAttempt(**parent);
  restored_before_ = attempt ? attempt->step : 0;
}

Result<State> Keeper::CollectShares() {
  std::vector<std::string> shares(static_cast<size_t>(boot_.world_size));
  for (int rank = 0; rank < boot_.world_size; ++rank) {
    CAIRN_ASSIGN_OR_RETURN(Mailbox::Letter letter, links_.mailbox->Take(kShareMessage, rank, kShareBound));
    shares[static_cast<size_t>(rank)] = std::move(letter.payload);
  }
  return MergeShares(shares);
}

Order Keeper::Restore() {
  const auto stop = [](const Status& why) { return Order{.kind = Order::kStop, .status = why}; };
  auto state = CollectShares();
  if (!state.ok()) return stop(state.status());
  state_ = *std::move(state);
  auto plan = PlanSave(state_.layout);
  if (!plan.ok()) return stop(plan.status());
  auto described = DescribeSave(state_.layout, *plan);
  if (!described.ok()) return stop(described.status());
  described_ = *std::move(described);
  Order prepare{.kind = Order::kPrepare, .state = EncodeState(state_)};
  links_.broadcast(prepare);
  for (int rank = 0; rank < boot_.world_size; ++rank) {
    auto letter = links_.mailbox->Take(kOutcomeMessage, rank, kShareBound);
    if (!letter.ok()) return stop(letter.status());
    const auto outcome = DecodeSessionMessage<Outcome>(letter->payload);
    if (!outcome.ok()) return stop(outcome.status());
    if (outcome->status.ok()) continue;
    const std::string why = "rank " + std::to_string(rank) + " cannot be saved: " + outcome->status.message();
    if (boot_.settings.require) return stop({outcome->status.code(), why});
    links_.log->Warn(why);
  }

  Order order{.kind = Order::kProceed};
  const bool start_over = boot_.settings.resume == Resume::kNever && boot_.first_life;
  if (directory_ && !start_over) {
    auto chosen = Choose(*directory_);
    if (!chosen.ok()) return stop(chosen.status());
    order = *std::move(chosen);
  } else if (boot_.known_to_save) {
    return stop(Stop(Code::kNotFound, "an earlier life of this job has saved in " + boot_.settings.dir +
                                          ", which cannot be used now: is a mount missing?"));
  } else if (boot_.settings.resume == Resume::kRequire && boot_.first_life) {
    return stop(
        Stop(Code::kNotFound, "--checkpoint-resume=require: " + boot_.settings.dir + " holds no checkpoint"));
  }
  parent_ = newest_;
  LookBack();
  if (life_) {
    const Status published = PublishParent();
    if (!published.ok())
      links_.log->Warn("NOT PROTECTED for now: ", published.message(),
                       ". The job goes on; every save will try again");
  }
  if (!order.restored)
    links_.log->Info("starting at step 0",
                     start_over ? " (--checkpoint-resume=never)" : ": nothing to restore");
  Journal("restore", {{"checkpoint", Quote(newest_)},
                      {"step", std::to_string(order.step)},
                      {"world_size", std::to_string(boot_.world_size)}});
  return order;
}

Result<Order> Keeper::Choose(const RunDirectory& dir) {
  CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(dir));
  CAIRN_ASSIGN_OR_RETURN(const bool finished, IsFinished(dir, listing));
  const Settings& settings = boot_.settings;
  const bool exact = settings.resume == Resume::kStep && boot_.first_life;
  const std::vector<Checkpoint> candidates = Candidates(listing);
  for (const Checkpoint& checkpoint : candidates) {
    if (exact && checkpoint.id.step != settings.resume_step) continue;
    auto loaded = LoadCheckpoint(dir, checkpoint.name);
    Status outcome = loaded.status();
    if (loaded.ok()) {
      auto order = Offer(*loaded);
      if (order.ok()) {
        newest_ = checkpoint.name;
        order->finished = finished && checkpoint.name == candidates.front().name;
        if (order->finished)
          links_.log->Info("this run is finished: its last state (step ", order->step,
                           ") is loaded, and there is nothing left to do");
        return order;
      }
      outcome = order.status();
    }
    if (outcome.code() != Code::kDamage) return outcome;
    PassOver(dir, checkpoint.name, outcome);
  }
  if (exact) {
    return Stop(Code::kNotFound, "--checkpoint-resume=" + std::to_string(settings.resume_step) + ": " +
                                     dir.path() + " holds no good checkpoint of that step; `cairn ls " +
                                     dir.path() + "` lists what it has");
  }
  if (const Status fresh = MayStartFresh(listing); !fresh.ok()) {
    return Stop(fresh.code(), "no good checkpoint is left in " + dir.path() + ": " + fresh.message() +
                                  ". `cairn verify " + dir.path() +
                                  "` says more; to start anew, give another --checkpoint-dir");
  }
  if (boot_.known_to_save && newest_.empty()) {
    return Stop(Code::kNotFound, "an earlier life of this job has saved in " + dir.path() +
                                     ", which holds no checkpoint now: is a mount missing? To start anew, "
                                     "give another --checkpoint-dir");
  }
  if (settings.resume == Resume::kRequire && boot_.first_life) {
    return Stop(Code::kNotFound, "--checkpoint-resume=require: " + dir.path() + " holds no checkpoint");
  }
  return Order{.kind = Order::kProceed};
}

void Keeper::PassOver(const RunDirectory& dir, const std::string& name, const Status& why) {
  links_.log->Warn("checkpoint ", name, " is damaged and passed over: ", why.message());
  const Status marked = MarkDamaged(dir, name, why.message());
  if (!marked.ok()) links_.log->Warn("it could not be marked: ", marked.message());
  Journal("damaged", {{"checkpoint", Quote(name)}, {"why", Quote(why.message())}});
}

// Has all members load `checkpoint`. Worst of their outcomes: a mismatch or a fault that proves nothing stops; damage falls back.
Result<Order> Keeper::Offer(const LoadedCheckpoint& checkpoint) {
  const std::string title = checkpoint.name + " (step " + std::to_string(checkpoint.manifest.step) + ")";
  std::vector<BlobSpec> saved_blobs;
  for (const BlobItem& blob : checkpoint.blobs.items)
    saved_blobs.push_back({blob.name, static_cast<int>(blob.policy)});
  const std::vector<std::string> differences =
      CompareItems(checkpoint.index.saved.arrays, saved_blobs, state_);
  if (!differences.empty()) {
    return Stop(Code::kMismatch,
                "checkpoint " + title + " and the program differ:" + Joined(differences) +
                    "\nThe checkpoint is unchanged and good. Run the program that made it, or start anew "
                    "with another "
                    "--checkpoint-dir (or, at the job's first life, --checkpoint-resume=never)");
  }
  Order load{.kind = Order::kLoad, .path = checkpoint.path, .index_hash = checkpoint.manifest.index_hash};
  const bool same_world = checkpoint.manifest.world_size == static_cast<uint32_t>(boot_.world_size);
  for (const BlobItem& blob : checkpoint.blobs.items) {
    if (same_world) continue;
    if (blob.policy == BlobPolicy::kRefuse) {
      return Stop(Code::kMismatch,
                  "blob \"" + blob.name + "\" of checkpoint " + title + " belongs to " +
                      std::to_string(checkpoint.manifest.world_size) +
                      " ranks and its policy is to refuse another number (" +
                      std::to_string(boot_.world_size) +
                      " now). Run with as many ranks as then, or register it with another policy");
    }
    load.reset.push_back(blob.name);
  }
  for (int rank = 0; rank < boot_.world_size; ++rank) {
    load.blobs.clear();
    if (same_world) {
      for (const BlobItem& blob : checkpoint.blobs.items) {
        const auto& bytes = blob.by_rank[static_cast<size_t>(rank)];
        if (bytes) load.blobs.emplace(blob.name, *bytes);
      }
    }
    links_.send(rank, load);
  }
  const auto begin = std::chrono::steady_clock::now();
  Status worst;
  uint64_t read_bytes = 0;
  for (int rank = 0; rank < boot_.world_size; ++rank) {
    CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter,
                           links_.mailbox->Take(kOutcomeMessage, rank, kLoadBound));
    CAIRN_ASSIGN_OR_RETURN(const Outcome outcome, DecodeSessionMessage<Outcome>(letter.payload));
    read_bytes += outcome.read_bytes;
    if (outcome.status.ok() || (!worst.ok() && worst.code() != Code::kDamage)) continue;
    if (worst.ok() || outcome.status.code() != Code::kDamage)
      worst = outcome.status.Annotate("rank " + std::to_string(rank));
  }
  if (!worst.ok())
    return worst.code() == Code::kDamage
               ? worst
               : worst.Annotate("checkpoint " + title + " could not be loaded; it is not marked");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  links_.log->Info("resumed at step ", checkpoint.manifest.step, " from ", checkpoint.name, ": ",
                   FormatBytes(read_bytes), " read in ",
                   FormatDuration(std::chrono::duration_cast<Nanoseconds>(seconds)), ", ",
                   checkpoint.manifest.world_size, checkpoint.manifest.world_size == 1 ? " rank" : " ranks",
                   " then, ", boot_.world_size, " now");
  for (const std::string& name : load.reset)
    links_.log->Info("blob \"", name, "\" is not restored: the number of ranks changed");
  Order order{.kind = Order::kProceed, .reset = load.reset, .restored = true};
  order.step = checkpoint.manifest.step;
  order.label = checkpoint.manifest.label;
  order.world_size_saved = checkpoint.manifest.world_size;
  return order;
}

// Between the start and now the directory was out of reach. What is in it may be older than what this life began from, or newer: to go on
// from there would make orphans of good checkpoints.
Status Keeper::OwnLate() {
  CAIRN_RETURN_IF_ERROR(too_late_);
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
  if (!life_) CAIRN_RETURN_IF_ERROR(OwnLate());
  CAIRN_ASSIGN_OR_RETURN(attempt_, BeginAttempt(life_->directory(), life_->epoch(), step));
  return attempt_->path;
}

Result<SaveReport> Keeper::Commit(const agreement::Commit& save) {
  SaveReport report;
  std::vector<ShardRecord> shards;
  Blobs blobs;
  for (const BlobSpec& spec : state_.blobs) {
    blobs.items.push_back({spec.name, static_cast<BlobPolicy>(spec.policy), {}});
    blobs.items.back().by_rank.resize(save.records.size());
  }
  for (size_t rank = 0; rank < save.records.size(); ++rank) {
    CAIRN_ASSIGN_OR_RETURN(MemberRecord record, DecodeSessionMessage<MemberRecord>(save.records[rank]));
    shards.insert(shards.end(), record.shards.begin(), record.shards.end());
    for (BlobItem& blob : blobs.items) {
      const auto it = record.blobs.find(blob.name);
      if (it != record.blobs.end()) blob.by_rank[rank] = std::move(it->second);
    }
    report.stall_ns = std::max(report.stall_ns, record.stall_ns);
    report.drain_ns = std::max(report.drain_ns, record.drain_ns);
  }
  Index index = *described_;
  CAIRN_RETURN_IF_ERROR(FillRecords(index, shards));
  Manifest manifest;
  manifest.run_id = life_->directory().info().id;
  manifest.label = save.label;
  manifest.world_size = static_cast<uint32_t>(boot_.world_size);
  manifest.trigger = TriggerName(save.reason);
  manifest.parent = parent_.value_or("");
  manifest.tag = save.tags.empty() ? "" : save.tags.front();
  manifest.cairn_version = kVersion;
  manifest.settings = boot_.settings.given;
  CAIRN_ASSIGN_OR_RETURN(manifest,
                         cairn::Commit(life_->directory(), *attempt_, index, blobs, std::move(manifest)));
  newest_ = attempt_->name.ToString();
  attempt_.reset();
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
  Journal("saved", {{"checkpoint", Quote(newest_)},
                    {"step", std::to_string(report.step)},
                    {"label", std::to_string(report.label)},
                    {"trigger", Quote(report.trigger)},
                    {"bytes", std::to_string(report.bytes)},
                    {"stall_ns", std::to_string(report.stall_ns)},
                    {"drain_ns", std::to_string(report.drain_ns)}});
  return report;
}

Status Keeper::Finish() {
  if (!life_) return {Code::kUnavailable, "the directory could not be owned"};
  if (newest_.empty()) return OkStatus();  // nothing was ever saved: there is no last state to name
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
    CAIRN_ASSIGN_OR_RETURN(std::set<std::string> kept, ReadPins(dir));
    CAIRN_ASSIGN_OR_RETURN(const auto tags, ReadTags(dir));
    for (const auto& [tag, checkpoint] : tags) kept.insert(checkpoint);
    CAIRN_ASSIGN_OR_RETURN(const std::set<std::string> leased,
                           leases_.Leased(dir, std::chrono::steady_clock::now()));
    kept.insert(leased.begin(), leased.end());
    for (const std::string& name :
         PlanRetention(listing, life_->epoch(), *parent_, boot_.settings.keep_last, kept)) {
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
  if (!life_) return;
  (void)RemoveFile(life_->directory().PathOf(names::kControl));
  const Status left = life_->End();
  if (!left.ok()) links_.log->Debug("the directory was left without a word: ", left.message());
}

void Keeper::Journal(std::string_view event, const Fields& fields) {
  if (!directory_) return;
  std::string line = "{\"event\":" + Quote(event) + ",\"time\":" + Quote(UtcNow()) +
                     ",\"epoch\":" + std::to_string(life_ ? life_->epoch() : 0);
  for (const auto& [name, value] : fields) line += "," + Quote(name) + ":" + value;
  const Status written = directory_->Journal(line + "}");
  if (!written.ok()) links_.log->Debug("the journal was not written: ", written.message());
}

std::string Keeper::Quote(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace cairn
