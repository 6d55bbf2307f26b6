#include "runtime/session/keeper.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "planner/save_plan.h"
#include "runtime/catalog/marks.h"
#include "runtime/catalog/target.h"
#include "runtime/formats/names.h"
#include "runtime/formats/sums.h"
#include "runtime/io/random.h"
#include "runtime/session/directory_room.h"
#include "runtime/session/metrics.h"
#include "runtime/session/partner.h"
#include "runtime/session/strikes.h"
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

// " allow …," with the setting that would, or nothing where none would.
std::string HowToAllow(uint32_t match, bool helps) {
  if (!helps) return "";
  std::string value;
  if ((match & kAllowMissing) != 0) value += "allow-missing";
  if ((match & kAllowExtra) != 0) value += value.empty() ? "allow-extra" : ",allow-extra";
  return " allow the difference by --checkpoint-match=" + value + ",";
}

Status Stop(Code code, std::string message) { return {code, std::move(message)}; }

// How much an outcome counts. A mismatch or a fault that proves nothing stops all; damage falls back. Least of all: that a member gave up since
// another one had, or that the exchange failed, which it does on many members when one ends early for another reason.
int Weight(Code code) {
  switch (code) {
    case Code::kOk:
      return 0;
    case Code::kCancelled:
      return 1;
    case Code::kUnavailable:
      return 2;
    case Code::kDamage:
      return 3;
    default:
      return 4;
  }
}

}  // namespace

Keeper::Keeper(const Bootstrap& boot, std::string session, Links links)
    : boot_(boot), session_(std::move(session)), links_(std::move(links)), claim_(RandomHex(16)) {}

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
  Journal("life", {{"job", Quote(boot_.identity.job)},
                   {"step", Quote(boot_.identity.step)},
                   {"restart", std::to_string(boot_.identity.restart)},
                   {"node", Quote(boot_.identity.node)},
                   {"world_size", std::to_string(boot_.world_size)}});
  return OkStatus();
}

ControlPoint Keeper::Control() const {
  return {boot_.rendezvous, boot_.key, session_, boot_.token.ControlKey()};
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

Status Keeper::MergeShares() {
  ShareMerger merger;
  for (int rank = 0; rank < boot_.world_size; ++rank) {
    CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter,
                           links_.mailbox->Take(kShareMessage, rank, kShareBound));
    CAIRN_RETURN_IF_ERROR(merger.Add(letter.payload));
  }
  CAIRN_ASSIGN_OR_RETURN(state_, std::move(merger).Finish());
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(state_.layout));
  CAIRN_ASSIGN_OR_RETURN(described_, DescribeSave(state_.layout, plan));
  links_.broadcast(Order{.kind = Order::kLayout, .state = EncodeState(state_)});
  return OkStatus();
}

Result<std::vector<Inventory>> Keeper::CollectInventories() {
  std::vector<Inventory> inventories;
  for (int rank = 0; rank < boot_.world_size; ++rank) {
    CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter,
                           links_.mailbox->Take(Inventory::kType, rank, kShareBound));
    CAIRN_ASSIGN_OR_RETURN(Inventory inventory, DecodeSessionMessage<Inventory>(letter.payload));
    inventories.push_back(std::move(inventory));
  }
  return inventories;
}

Result<std::vector<Outcome>> Keeper::Ask(const std::function<Order(int rank)>& order_for,
                                         std::chrono::nanoseconds bound) {
  const uint32_t round = ++rounds_;
  for (int rank = 0; rank < boot_.world_size; ++rank) {
    Order order = order_for(rank);
    order.round = round;
    links_.send(rank, order);
  }
  std::vector<Outcome> outcomes(static_cast<size_t>(boot_.world_size));
  Status worst;
  for (int n = 0; n < boot_.world_size; ++n) {
    CAIRN_ASSIGN_OR_RETURN(
        const Mailbox::Letter letter,
        links_.mailbox->Take(Outcome::kType, -1,
                             std::chrono::duration_cast<std::chrono::milliseconds>(bound)));
    CAIRN_ASSIGN_OR_RETURN(Outcome outcome, DecodeSessionMessage<Outcome>(letter.payload));
    if (!outcome.status.ok() && worst.ok()) links_.broadcast({.kind = Order::kAbandon, .round = round});
    if (Weight(outcome.status.code()) > Weight(worst.code()))
      worst = outcome.status.Annotate("rank " + std::to_string(letter.from));
    outcomes[static_cast<size_t>(letter.from)] = std::move(outcome);
  }
  CAIRN_RETURN_IF_ERROR(worst);
  return outcomes;
}

Order Keeper::Restore(MatchOptions match) {
  match_ = std::move(match);
  match_.allowed = boot_.settings.match.value_or(match_.allowed);
  const auto stop = [](const Status& why) { return Order{.kind = Order::kStop, .status = why}; };
  auto inventories = CollectInventories();
  if (!inventories.ok()) return stop(inventories.status());
  inventories_ = *std::move(inventories);
  if (const Status merged = MergeShares(); !merged.ok()) return stop(merged);

  Order order{.kind = Order::kProceed};
  const bool start_over = boot_.settings.resume == Resume::kNever && boot_.first_life;
  if (directory_ && !start_over) {
    auto chosen = Choose(*directory_);
    if (!chosen.ok()) return stop(chosen.status());
    order = *std::move(chosen);
    if (order.restored && !state_.tables.empty()) {
      links_.broadcast(Order{.kind = Order::kShare});
      if (const Status merged = MergeShares(); !merged.ok()) return stop(merged);
    }
  } else if (boot_.known_to_save) {
    return stop(Stop(Code::kNotFound, "an earlier life of this job has saved in " + boot_.settings.dir +
                                          ", which cannot be used now: is a mount missing?"));
  } else if (boot_.settings.resume == Resume::kRequire && boot_.first_life) {
    return stop(
        Stop(Code::kNotFound, "--checkpoint-resume=require: " + boot_.settings.dir + " holds no checkpoint"));
  }
  parent_ = rescued_ && rescued_->name == newest_ ? rescued_->parent : newest_;
  LookBack();
  if (life_) {
    const Status published = PublishParent();
    if (!published.ok())
      links_.log->Warn("NOT PROTECTED for now: ", published.message(),
                       ". The job goes on; every save will try again");
  }
  if (const Status prepared = PrepareAll(); !prepared.ok()) return stop(prepared);
  if (!order.restored)
    links_.log->Info("starting at step 0",
                     start_over ? " (--checkpoint-resume=never)" : ": nothing to restore");
  Journal("restore", {{"checkpoint", Quote(newest_)},
                      {"step", std::to_string(order.step)},
                      {"world_size", std::to_string(boot_.world_size)}});
  return order;
}

// Memory for the saves of this life: after the load, when the program's own memory is in use and what earlier lives left is not any more.
Status Keeper::PrepareAll() {
  const std::string run_id = life_ ? life_->directory().info().id : "";
  const bool left = std::any_of(inventories_.begin(), inventories_.end(),
                                [](const Inventory& i) { return !i.slots.empty(); });
  if (left && parent_published_) {
    CAIRN_RETURN_IF_ERROR(
        Ask([&](int) { return Order{.kind = Order::kForget, .run_id = run_id}; }, kShareBound).status());
  }
  std::vector<int> partners(inventories_.size(), -1);
  if (boot_.settings.partner) {
    std::vector<std::string> nodes;
    for (const Inventory& inventory : inventories_) nodes.push_back(inventory.node);
    partners = PartnersOf(nodes);
    if (partners.front() < 0) links_.log->Info("no partner copies: all ranks are on one node");
  }
  for (int rank = 0; rank < boot_.world_size; ++rank) {
    Order order{.kind = Order::kPrepare, .run_id = run_id, .partner = partners[static_cast<size_t>(rank)]};
    for (uint32_t ward = 0; ward < partners.size(); ++ward) {
      if (partners[ward] == rank) order.wards.push_back(ward);
    }
    links_.send(rank, order);
  }
  std::string warning;  // of the first rank that has one, for all of them
  int warned = 0;
  for (int rank = 0; rank < boot_.world_size; ++rank) {
    CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter,
                           links_.mailbox->Take(kOutcomeMessage, rank, kShareBound));
    CAIRN_ASSIGN_OR_RETURN(const Outcome outcome, DecodeSessionMessage<Outcome>(letter.payload));
    if (!outcome.warning.empty() && warned++ == 0)
      warning = "rank " + std::to_string(rank) + ": " + outcome.warning;
    if (outcome.status.ok()) continue;
    const std::string why = "rank " + std::to_string(rank) + " cannot be saved: " + outcome.status.message();
    if (boot_.settings.require) return {outcome.status.code(), why};
    links_.log->Warn(why);
  }
  if (warned > 1) warning += ". So it is with " + std::to_string(warned - 1) + " more ranks";
  if (warned > 0) links_.log->Warn(warning);
  return OkStatus();
}

Result<Order> Keeper::Choose(const RunDirectory& dir) {
  CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(dir));
  CAIRN_ASSIGN_OR_RETURN(const bool finished, IsFinished(dir, listing));
  const Settings& settings = boot_.settings;
  const bool exact = settings.resume == Resume::kStep && boot_.first_life;
  const uint32_t epoch = life_ ? life_->epoch() : std::numeric_limits<uint32_t>::max();
  const std::vector<Checkpoint> candidates = Candidates(listing);
  std::optional<LocalSnapshot> local =
      NewestLocal(inventories_, dir.info().id, [&](const LocalSnapshot& snapshot) {
        return listing.OnLine(snapshot.epoch, snapshot.step) &&
               (!exact || snapshot.step == settings.resume_step);
      });
  const auto newer_than = [](const LocalSnapshot& snapshot, const Checkpoint& checkpoint) {
    return std::tie(snapshot.epoch, snapshot.step) > std::tie(checkpoint.id.epoch, checkpoint.id.step);
  };
  if (local && !life_) {
    links_.log->Warn("step ", local->step,
                     " lies staged in the memory of the nodes, but cannot be taken from there: ", dir.path(),
                     " cannot be written");
    local.reset();
  }
  // Loads a checkpoint; nothing when it is damaged.
  const auto take = [&](const std::string& name) -> Result<std::optional<Order>> {
    auto loaded = LoadCheckpoint(dir, name);
    Status outcome = loaded.status();
    if (loaded.ok()) {
      auto order = Offer(*loaded);
      if (order.ok()) {
        newest_ = name;
        order->finished = finished && name == candidates.front().name;
        if (order->finished)
          links_.log->Info("this run is finished: its last state (step ", order->step,
                           ") is loaded, and there is nothing left to do");
        return std::optional<Order>(*std::move(order));
      }
      outcome = order.status();
    }
    if (outcome.code() != Code::kDamage) return outcome;
    PassOver(dir, name, outcome);
    return std::optional<Order>();
  };
  for (auto next = candidates.begin();;) {
    if (local && (next == candidates.end() || newer_than(*local, *next))) {
      const LocalSnapshot snapshot = *std::exchange(local, std::nullopt);
      auto rescued = Rescue(snapshot, next == candidates.end() ? "" : next->name);
      if (rescued.ok()) {
        CAIRN_ASSIGN_OR_RETURN(std::optional<Order> order, take(*rescued));
        if (order) return *std::move(order);
      } else if (rescued.status().code() == Code::kDamage) {
        links_.log->Warn("step ", snapshot.step,
                         " lay staged in the memory of the nodes, but is damaged and passed over: ",
                         rescued.status().message());
      } else {
        return rescued.status().Annotate("step " + std::to_string(snapshot.step) +
                                         " lies staged in the memory of the nodes and could not be made "
                                         "durable; it stays there as long as the job has its nodes");
      }
      continue;
    }
    if (next == candidates.end()) break;
    if (!exact || next->id.step == settings.resume_step) {
      if (!exact) CAIRN_RETURN_IF_ERROR(MayTryAgain(dir, listing, *next, epoch, settings.strikes));
      CAIRN_ASSIGN_OR_RETURN(std::optional<Order> order, take(next->name));
      if (order) return *std::move(order);
    }
    ++next;
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
  const std::optional<Origin>& origin = dir.info().origin;
  if (listing.checkpoints.empty() && origin && !origin->checkpoint.empty()) return BeginFrom(*origin);
  if (!settings.from.empty() && boot_.first_life) {
    return Stop(Code::kExists,
                "--checkpoint-from: the run in " + dir.path() +
                    " began without it, and has saved nothing since: remove that directory, or give "
                    "another --checkpoint-dir");
  }
  if (settings.resume == Resume::kRequire && boot_.first_life) {
    return Stop(Code::kNotFound, "--checkpoint-resume=require: " + dir.path() + " holds no checkpoint");
  }
  return Order{.kind = Order::kProceed};
}

// What --checkpoint-from names, where there is no run yet that it could be too late for.
Result<std::optional<Origin>> Keeper::OriginOfNewRun() const {
  const Settings& settings = boot_.settings;
  const bool start_over = settings.resume == Resume::kNever && boot_.first_life;
  if (settings.from.empty() || start_over || RunDirectory::OpenExisting(settings.dir).ok())
    return std::optional<Origin>();
  const auto chosen = ChooseCheckpoint(settings.from);
  if (!chosen.ok()) return chosen.status().Annotate("--checkpoint-from=" + settings.from);
  return std::optional<Origin>({"cairn", chosen->dir.path(), chosen->dir.info().id, chosen->checkpoint.name});
}

// The first checkpoint of the run's line lies in another run's directory. Damage there is that run's to mark; this one must not begin
// from another state than it was told to.
Result<Order> Keeper::BeginFrom(const Origin& origin) {
  const std::string title = "this run begins from " + origin.path + "@" + origin.checkpoint;
  const auto begin = [&]() -> Result<Order> {
    CAIRN_ASSIGN_OR_RETURN(const RunDirectory dir, RunDirectory::OpenExisting(origin.path));
    const BeatingLease lease(dir, origin.checkpoint);
    CAIRN_ASSIGN_OR_RETURN(const LoadedCheckpoint checkpoint, LoadCheckpoint(dir, origin.checkpoint));
    links_.log->Info(title);
    return Offer(checkpoint);
  };
  auto order = begin();
  if (order.ok()) return order;
  return order.status().Annotate(
      title + ", which cannot be loaded. Nothing was saved in " + boot_.settings.dir +
      " yet: with --checkpoint-from of another checkpoint, remove that directory or "
      "give another");
}

// Before the first save can fail for it.
void Keeper::CompareRoom() {
  if (std::exchange(room_compared_, true)) return;
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

Result<std::string> Keeper::Rescue(const LocalSnapshot& local, const std::string& parent) {
  const auto begin = std::chrono::steady_clock::now();
  links_.log->Info("step ", local.step, " was staged by all ", local.world_size,
                   " ranks and is not durable: writing it from the memory of the nodes");
  // The layout, from the first rank of the node that has it.
  int reader = 0;
  while (inventories_[static_cast<size_t>(reader)].node != local.layout_node) ++reader;
  links_.send(reader, Order{.kind = Order::kShowLayout, .path = local.layout_folder});
  CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter,
                         links_.mailbox->Take(Outcome::kType, reader, kShareBound));
  CAIRN_ASSIGN_OR_RETURN(const Outcome shown, DecodeSessionMessage<Outcome>(letter.payload));
  CAIRN_RETURN_IF_ERROR(shown.status);
  CAIRN_ASSIGN_OR_RETURN(const State state, DecodeState(shown.layout));
  if (LayoutHash(state.layout) != local.layout || state.layout.world_size != local.world_size)
    return Status(Code::kDamage, local.layout_folder + " holds the layout of another save");
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(state.layout));
  CAIRN_ASSIGN_OR_RETURN(Index index, DescribeSave(state.layout, plan));

  CAIRN_ASSIGN_OR_RETURN(attempt_, BeginAttempt(life_->directory(), life_->epoch(), local.step));
  const auto write = [&]() -> Result<Manifest> {
    const std::vector<std::vector<RescueSource>> dealt = DealOut(local, inventories_);
    CAIRN_ASSIGN_OR_RETURN(const std::vector<Outcome> outcomes,
                           Ask(
                               [&](int rank) {
                                 return Order{.kind = Order::kRescue,
                                              .state = shown.layout,
                                              .path = attempt_->path,
                                              .sources = dealt[static_cast<size_t>(rank)]};
                               },
                               kLoadBound));
    std::vector<MemberRecord> records(local.world_size);
    for (const Outcome& outcome : outcomes) {
      for (const auto& [rank, bytes] : outcome.records) {
        if (rank >= records.size()) return Status(Code::kInternal, "records of rank " + std::to_string(rank));
        CAIRN_ASSIGN_OR_RETURN(records[rank], DecodeSessionMessage<MemberRecord>(bytes));
      }
    }
    Manifest manifest;
    manifest.label = local.label;
    manifest.trigger = "rescue";
    manifest.parent = parent;
    return Publish(std::move(index), records, state, std::move(manifest));
  };
  const Result<Manifest> manifest = write();
  if (!manifest.ok()) {
    Abandon();
    return manifest.status();
  }
  const std::string name = attempt_->name.ToString();
  attempt_.reset();
  rescued_ = {name, parent, local};
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  links_.log->Info("rescued step ", local.step, ": ", FormatBytes(manifest->total_bytes), " in ",
                   FormatDuration(std::chrono::duration_cast<Nanoseconds>(seconds)), ", ", name);
  Journal("rescued", {{"checkpoint", Quote(name)},
                      {"step", std::to_string(local.step)},
                      {"label", std::to_string(local.label)},
                      {"bytes", std::to_string(manifest->total_bytes)}});
  return name;
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
  Matching matching = MatchItems(checkpoint.index.saved.arrays, saved_blobs, state_, match_);
  if (!matching.refused.empty()) {
    return Stop(Code::kMismatch,
                "checkpoint " + title + " and the program differ:" + Joined(matching.refused) +
                    "\nThe checkpoint is unchanged and good. Run the program that made it," +
                    HowToAllow(matching.curable | match_.allowed, matching.curable != 0) +
                    " or start anew with another "
                    "--checkpoint-dir (or, at the job's first life, --checkpoint-resume=never)");
  }
  Order load{.kind = Order::kLoad,
             .path = checkpoint.path,
             .index_hash = checkpoint.manifest.index_hash,
             .differences = std::move(matching.differences)};
  const bool same_world = checkpoint.manifest.world_size == static_cast<uint32_t>(boot_.world_size);
  std::vector<std::string> reset;
  for (const BlobItem& blob : checkpoint.blobs.items) {
    const auto name = matching.blobs.find(blob.name);
    if (name == matching.blobs.end()) continue;
    if (blob.policy == BlobPolicy::kMerge) {
      for (const auto& bytes : blob.by_rank) load.merged_blobs[name->second].push_back(bytes.value_or(""));
      continue;
    }
    if (same_world) continue;
    if (blob.policy == BlobPolicy::kRefuse) {
      return Stop(Code::kMismatch,
                  "blob \"" + blob.name + "\" of checkpoint " + title + " belongs to " +
                      std::to_string(checkpoint.manifest.world_size) +
                      " ranks and its policy is to refuse another number (" +
                      std::to_string(boot_.world_size) +
                      " now). Run with as many ranks as then, or register it with another policy");
    }
    std::erase_if(load.differences, [&](const ItemDifference& d) { return d.name == name->second; });
    load.differences.push_back({ItemDifference::kReset, name->second, blob.name});
    reset.push_back(name->second);
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto order_for = [&](int rank) {
    Order order = load;
    if (rescued_ && rescued_->name == checkpoint.name)
      order.sources = SourcesOn(rescued_->local, inventories_[static_cast<size_t>(rank)].node);
    for (const BlobItem& blob : checkpoint.blobs.items) {
      if (!same_world) break;
      const auto name = matching.blobs.find(blob.name);
      const auto& bytes = blob.by_rank[static_cast<size_t>(rank)];
      if (bytes && name != matching.blobs.end() && blob.policy != BlobPolicy::kMerge)
        order.blobs.emplace(name->second, *bytes);
    }
    return order;
  };
  auto outcomes = Ask(order_for, kLoadBound);
  if (outcomes.status().code() == Code::kUnavailable) {
    links_.log->Warn("the ranks cannot hand data to each other (", outcomes.status().message(),
                     "); each reads all that it needs instead");
    load.exchange = false;
    outcomes = Ask(order_for, kLoadBound);
  }
  if (!outcomes.ok()) {
    const Status& worst = outcomes.status();
    return worst.code() == Code::kDamage
               ? worst
               : worst.Annotate("checkpoint " + title + " could not be loaded; it is not marked");
  }
  uint64_t read_bytes = 0, needed_bytes = 0;
  for (const Outcome& outcome : *outcomes) {
    read_bytes += outcome.read_bytes;
    needed_bytes += outcome.needed_bytes;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  links_.log->Info(
      "resumed at step ", checkpoint.manifest.step, " from ", checkpoint.name, ": ", FormatBytes(read_bytes),
      " read", load.exchange ? " for " + FormatBytes(needed_bytes) + " of state" : "", " in ",
      FormatDuration(std::chrono::duration_cast<Nanoseconds>(seconds)), ", ", checkpoint.manifest.world_size,
      checkpoint.manifest.world_size == 1 ? " rank" : " ranks", " then, ", boot_.world_size, " now");
  if (!matching.noted.empty()) {
    links_.log->Info("checkpoint and program differ, which --checkpoint-match or the program allows:",
                     Joined(matching.noted));
  }
  for (const std::string& name : reset)
    links_.log->Info("blob \"", name, "\" is not restored: the number of ranks changed");
  Order order{.kind = Order::kProceed, .restored = true};
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
  CompareRoom();
  CAIRN_ASSIGN_OR_RETURN(attempt_, BeginAttempt(life_->directory(), life_->epoch(), step));
  return attempt_->path;
}

// The files of the attempt are written: makes it a checkpoint. `records` by rank of the life that staged it. Of `manifest` the caller fills
// label, trigger, parent and tag.
Result<Manifest> Keeper::Publish(Index index, const std::vector<MemberRecord>& records, const State& state,
                                 Manifest manifest) {
  std::vector<ShardRecord> shards;
  Blobs blobs;
  for (const BlobSpec& spec : state.blobs) {
    blobs.items.push_back({spec.name, static_cast<BlobPolicy>(spec.policy), {}});
    blobs.items.back().by_rank.resize(records.size());
  }
  for (size_t rank = 0; rank < records.size(); ++rank) {
    shards.insert(shards.end(), records[rank].shards.begin(), records[rank].shards.end());
    for (BlobItem& blob : blobs.items) {
      const auto it = records[rank].blobs.find(blob.name);
      if (it != records[rank].blobs.end()) blob.by_rank[rank] = it->second;
    }
    if (const auto it = records[rank].blobs.find(kMetricsBlob); it != records[rank].blobs.end()) {
      CAIRN_ASSIGN_OR_RETURN(MetricValues metrics, DecodeMetrics(it->second));
      manifest.metrics.merge(metrics);  // the lowest rank's stay
    }
  }
  CAIRN_RETURN_IF_ERROR(FillRecords(index, shards));
  manifest.run_id = life_->directory().info().id;
  manifest.world_size = state.layout.world_size;
  manifest.cairn_version = kVersion;
  manifest.settings = boot_.settings.given;
  return cairn::Commit(life_->directory(), *attempt_, index, blobs, std::move(manifest));
}

Result<SaveReport> Keeper::Commit(const agreement::Commit& save) {
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
  Manifest manifest;
  manifest.label = save.label;
  manifest.trigger = TriggerName(save.reason);
  manifest.parent = parent_.value_or("");
  manifest.tag = save.tags.empty() ? "" : save.tags.front();
  CAIRN_ASSIGN_OR_RETURN(manifest, Publish(*described_, records, state_, std::move(manifest)));
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
  if (!life_) return;
  RemoveControlFile(boot_.settings.dir, Control());
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
