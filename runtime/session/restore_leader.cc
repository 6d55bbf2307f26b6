#include "runtime/session/restore_leader.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "runtime/catalog/marks.h"
#include "runtime/catalog/retention.h"
#include "runtime/interop/foreign.h"
#include "runtime/session/exchange_way.h"
#include "runtime/session/save_preparation.h"
#include "runtime/session/starting_point.h"
#include "runtime/session/strikes.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

// A restore moves at the speed of the file system; a member that hangs is found by its heartbeat, not by this.
constexpr std::chrono::hours kLoadBound{24};

std::string Joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += "\n  " + line;
  return out;
}

constexpr size_t kMaxForeignIndexBytes = 64 << 20;  // as much as a layout (control/frame.h)

// What the names of a model's items begin with where the PyTorch package registers them.
constexpr std::string_view kModel = "model.";

std::string TitleOf(const LoadedCheckpoint& checkpoint) {
  return checkpoint.name + " (step " + std::to_string(checkpoint.manifest.step) + ")";
}

// ", 4 ranks then, 2 now"; "" for what no ranks of Cairn's have saved.
std::string RanksThenAndNow(uint32_t then, int now) {
  if (then == 0) return "";
  return ", " + std::to_string(then) + (then == 1 ? " rank" : " ranks") + " then, " + std::to_string(now) +
         " now";
}

// " allow …," with the setting that would, or nothing where none would.
std::string HowToAllow(uint32_t match, bool helps) {
  if (!helps) return "";
  std::string value;
  if ((match & kAllowMissing) != 0) value += "allow-missing";
  if ((match & kAllowExtra) != 0) value += value.empty() ? "allow-extra" : ",allow-extra";
  return " allow the difference by --checkpoint-match=" + value + ",";
}

}  // namespace

Order RestoreLeader::Lead() {
  Result<Order> order = Restore();
  if (!order.ok()) return {.kind = Order::kStop, .status = order.status()};
  order->way = way_.value_or(Order::kSockets);
  return *std::move(order);
}

Result<Order> RestoreLeader::Restore() {
  CAIRN_ASSIGN_OR_RETURN(inventories_, members_.Inventories());
  CAIRN_RETURN_IF_ERROR(MergeShares());

  Order order{.kind = Order::kProceed};
  const bool start_over = boot_.settings.resume == Resume::kNever && boot_.first_life;
  if (const RunDirectory* dir = keeper_.directory(); dir != nullptr && !start_over) {
    CAIRN_ASSIGN_OR_RETURN(order, Choose(*dir));
    if (order.restored && !state_.tables.empty()) CAIRN_RETURN_IF_ERROR(LayOutTables());
  } else if (boot_.known_to_save) {
    return Status(Code::kNotFound, "an earlier life of this job has saved in " + boot_.settings.dir +
                                       ", which cannot be used now: is a mount missing?");
  } else if (boot_.settings.resume == Resume::kRequire && boot_.first_life) {
    return Status(Code::kNotFound,
                  "--checkpoint-resume=require: " + boot_.settings.dir + " holds no checkpoint");
  }
  const std::string parent = rescued_ && rescued_->name == loaded_ ? rescued_->parent : loaded_;
  keeper_.GoOnFrom({state_, std::move(index_), loaded_, parent});
  if (!order.outputs.empty() && !keeper_.parent_published()) {
    // The run does not go on from here: its next life may load a checkpoint of which the lines behind the cut are a part.
    log_.Warn("outputs are not cut back, and may have steps twice: this life could not record in ",
              boot_.settings.dir, " from which checkpoint it goes on");
    order.outputs.clear();
  }
  CAIRN_RETURN_IF_ERROR(Forget());
  CAIRN_RETURN_IF_ERROR(PrepareSaves(boot_, inventories_, state_, members_, keeper_));
  if (!order.restored)
    log_.Info("starting at step 0", start_over ? " (--checkpoint-resume=never)" : ": nothing to restore");
  keeper_.Journal("restore", {{"checkpoint", Keeper::Quote(loaded_)},
                              {"step", std::to_string(order.step)},
                              {"world_size", std::to_string(boot_.world_size)},
                              {"saved_world_size", std::to_string(cost_.saved_world_size)},
                              {"state_bytes", std::to_string(cost_.needed_bytes)},
                              {"read_bytes", std::to_string(cost_.read_bytes)},
                              {"near_bytes", std::to_string(cost_.near_bytes)},
                              {"restore_ns", std::to_string(cost_.time.count())}});
  return order;
}

Status RestoreLeader::MergeShares() {
  CAIRN_ASSIGN_OR_RETURN(state_, members_.Shares());
  state_.writer_of = ChooseWriters(boot_.settings, inventories_);
  CAIRN_ASSIGN_OR_RETURN(index_, TellLayout(state_, members_));
  return OkStatus();
}

// A restore changes nothing else of the layout. Where no table has grown, the plan of all saves is what it was.
Status RestoreLeader::LayOutTables() {
  members_.TellAll(Order{.kind = Order::kAskRoom});
  CAIRN_ASSIGN_OR_RETURN(TableRooms rooms, members_.Rooms());
  if (rooms.empty()) return OkStatus();
  CAIRN_RETURN_IF_ERROR(SetRooms(rooms, &state_));
  CAIRN_ASSIGN_OR_RETURN(index_, IndexOfSaves(state_));
  members_.TellAll(Order{.kind = Order::kRoom, .table_rooms = std::move(rooms)});
  return OkStatus();
}

Status RestoreLeader::Forget() {
  const bool left = std::any_of(inventories_.begin(), inventories_.end(),
                                [](const Inventory& i) { return !i.slots.empty(); });
  if (!left || !keeper_.parent_published()) return OkStatus();
  const std::string run_id = keeper_.epoch() ? keeper_.directory()->info().id : "";
  return members_.Ask([&](int) { return Order{.kind = Order::kForget, .run_id = run_id}; }, Members::kBound)
      .status();
}

Result<Order> RestoreLeader::Choose(const RunDirectory& dir) {
  CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(dir));
  CAIRN_ASSIGN_OR_RETURN(const bool finished, IsFinished(dir, listing));
  const Settings& settings = boot_.settings;
  const bool exact = settings.resume == Resume::kStep && boot_.first_life;
  const uint32_t epoch = keeper_.epoch().value_or(std::numeric_limits<uint32_t>::max());
  const std::vector<Checkpoint> candidates = Candidates(listing);
  std::optional<LocalSnapshot> local =
      NewestLocal(inventories_, dir.info().id, [&](const LocalSnapshot& snapshot) {
        return listing.OnLine(snapshot.epoch, snapshot.step) &&
               (!exact || snapshot.step == settings.resume_step);
      });
  const auto newer_than = [](const LocalSnapshot& snapshot, const Checkpoint& checkpoint) {
    return std::tie(snapshot.epoch, snapshot.step) > std::tie(checkpoint.id.epoch, checkpoint.id.step);
  };
  if (local && !keeper_.epoch()) {
    log_.Warn("step ", local->step,
              " lies staged in the memory of the nodes, but cannot be taken from there: ", dir.path(),
              " cannot be written");
    local.reset();
  }
  for (auto next = candidates.begin();;) {
    if (local && (next == candidates.end() || newer_than(*local, *next))) {
      const LocalSnapshot snapshot = *std::exchange(local, std::nullopt);
      auto rescued =
          LeadRescue(snapshot, next == candidates.end() ? "" : next->name, inventories_, members_, keeper_);
      if (rescued.ok()) {
        rescued_ = *std::move(rescued);
        CAIRN_ASSIGN_OR_RETURN(std::optional<Order> order, Take(dir, rescued_->name));
        if (order) return *std::move(order);
      } else if (rescued.status().code() == Code::kDamage) {
        log_.Warn("step ", snapshot.step,
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
      const Status may = exact ? OkStatus() : MayTryAgain(dir, listing, *next, epoch, settings.strikes);
      if (!may.ok()) {
        keeper_.Journal("refused",
                        {{"checkpoint", Keeper::Quote(next->name)}, {"why", Keeper::Quote(may.message())}});
        return may;
      }
      CAIRN_ASSIGN_OR_RETURN(std::optional<Order> order, Take(dir, next->name));
      if (order) {
        order->finished = finished && next == candidates.begin();
        if (order->finished)
          log_.Info("this run is finished: its last state (step ", order->step,
                    ") is loaded, and there is nothing left to do");
        return *std::move(order);
      }
    }
    ++next;
  }
  if (exact) {
    return Status(Code::kNotFound, "--checkpoint-resume=" + std::to_string(settings.resume_step) + ": " +
                                       dir.path() + " holds no good checkpoint of that step; `cairn ls " +
                                       dir.path() + "` lists what it has");
  }
  if (rescued_) {
    return Status(Code::kDamage, "checkpoint " + rescued_->name +
                                     ", which was made of what lay in the memory of the nodes, is damaged, "
                                     "and parts of it may be in the program's memory by now. It is marked: "
                                     "run the same command again");
  }
  if (const Status fresh = MayStartFresh(listing); !fresh.ok()) {
    return Status(fresh.code(), "no good checkpoint is left in " + dir.path() + ": " + fresh.message() +
                                    ". `cairn verify " + dir.path() +
                                    "` says more; to start anew, give another --checkpoint-dir");
  }
  if (boot_.known_to_save) {
    return Status(Code::kNotFound, "an earlier life of this job has saved in " + dir.path() +
                                       ", which holds no checkpoint now: is a mount missing? To start anew, "
                                       "give another --checkpoint-dir");
  }
  const std::optional<Origin>& origin = dir.info().origin;
  if (listing.checkpoints.empty() && origin && settings.resume != Resume::kNever) {
    if (!settings.from.empty() && boot_.first_life)
      CAIRN_RETURN_IF_ERROR(CheckOrigin(settings.from, *origin));
    return BeginFrom(*origin);
  }
  if (!settings.from.empty() && boot_.first_life) {
    return Status(Code::kExists,
                  "--checkpoint-from: the run in " + dir.path() +
                      " began without it, and has saved nothing since: remove that directory, or give "
                      "another --checkpoint-dir");
  }
  if (settings.resume == Resume::kRequire && boot_.first_life) {
    return Status(Code::kNotFound, "--checkpoint-resume=require: " + dir.path() + " holds no checkpoint");
  }
  return Order{.kind = Order::kProceed};
}

// The first state of the run's line is not in its directory. Damage of another run's checkpoint is that run's to mark; this one must not begin
// from another state than it was told to.
Result<Order> RestoreLeader::BeginFrom(const Origin& origin) {
  const std::string title = "this run begins from " + OriginTitle(origin);
  MatchOptions match = match_;
  if (!origin.only.empty()) match.only = PatternsOf(origin);
  const auto begin = [&]() -> Result<Order> {
    if (origin.format != "cairn") return OfferForeign(origin, title, match);
    CAIRN_ASSIGN_OR_RETURN(const RunDirectory dir, RunDirectory::OpenExisting(origin.path));
    const BeatingLeases lease(dir, {origin.checkpoint});
    CAIRN_ASSIGN_OR_RETURN(LoadedCheckpoint checkpoint, LoadCheckpoint(dir, origin.checkpoint));
    log_.Info(title);
    const std::string name = TitleOf(checkpoint);
    if (!origin.only.empty()) checkpoint.manifest.step = checkpoint.manifest.label = 0;
    return Offer(checkpoint, name, match);
  };
  auto order = begin();
  if (order.ok()) {
    order->outputs.clear();
    return order;
  }
  const bool weights_may_fit = order.status().code() == Code::kMismatch && origin.only.empty();
  return order.status().Annotate(title + ", which cannot be loaded. Nothing was saved in " +
                                 boot_.settings.dir + " yet: with another --checkpoint-from" +
                                 (weights_may_fit ? " (of a model's weights alone, --checkpoint-from=" +
                                                        OriginTitle(origin) + ":weights)"
                                                  : "") +
                                 ", remove that directory or give another");
}

// Loaded like a checkpoint, from files that have no sums.
Result<Order> RestoreLeader::OfferForeign(const Origin& origin, const std::string& title,
                                          const MatchOptions& match) {
  CAIRN_ASSIGN_OR_RETURN(ForeignState foreign, DescribeForeign(origin.format, origin.path));
  log_.Info(title, ", a state of format ", origin.format, ": it has no checksums, so nothing verifies it");
  LoadedCheckpoint checkpoint;
  checkpoint.name = checkpoint.path = origin.path;
  checkpoint.index = std::move(foreign.index);
  std::vector<ArraySpec>& arrays = checkpoint.index.saved.arrays;
  if (FitBehind(std::string(kModel), arrays, state_, match)) {
    for (ArraySpec& array : arrays) array.name.insert(0, kModel);
  }
  CAIRN_ASSIGN_OR_RETURN(std::string index, EncodeIndex(checkpoint.index));
  size_t bytes = index.size();
  for (const std::string& file : foreign.files) bytes += file.size();
  if (bytes > kMaxForeignIndexBytes) {
    return Status(Code::kInvalid, origin.path + ": the places of its " +
                                      std::to_string(checkpoint.index.saved.boxes.size()) +
                                      " parts are too much to be sent to all ranks; `cairn import` makes a "
                                      "run of such a state");
  }
  members_.TellAll(Order{.kind = Order::kForeign,
                         .state = std::move(index),
                         .path = origin.path,
                         .files = std::move(foreign.files)});
  return Offer(checkpoint, origin.path, match);
}

Result<std::optional<Order>> RestoreLeader::Take(const RunDirectory& dir, const std::string& name) {
  auto loaded = LoadCheckpoint(dir, name);
  Status outcome = loaded.status();
  if (loaded.ok()) {
    auto order = Offer(*loaded, TitleOf(*loaded), match_);
    if (order.ok()) {
      loaded_ = name;
      return std::optional<Order>(*std::move(order));
    }
    outcome = order.status();
  }
  if (outcome.code() != Code::kDamage) return outcome;
  PassOver(dir, name, outcome);
  return std::optional<Order>();
}

void RestoreLeader::PassOver(const RunDirectory& dir, const std::string& name, const Status& why) {
  log_.Warn("checkpoint ", name, " is damaged and passed over: ", why.message());
  const Status marked = MarkDamaged(dir, name, why.message());
  if (!marked.ok()) log_.Warn("it could not be marked: ", marked.message());
  keeper_.Journal("damaged", {{"checkpoint", Keeper::Quote(name)}, {"why", Keeper::Quote(why.message())}});
}

// What of the checkpoint's files also lies in the memory of the nodes.
std::vector<LocalHolder> RestoreLeader::HeldOfCheckpoint(const LoadedCheckpoint& checkpoint) const {
  if (!rescued_ || rescued_->name != checkpoint.name)
    return HeldOf(inventories_, checkpoint.manifest.run_id, checkpoint.manifest.epoch,
                  checkpoint.manifest.step);
  std::vector<LocalHolder> held;
  for (const std::vector<LocalHolder>& copies : rescued_->local.holders) held.push_back(copies.front());
  return held;
}

Status RestoreLeader::MayKeep(const Order& load, const std::string& title) {
  if (match_.planner && !touched_.empty()) {
    return {Code::kMismatch, "the program's load planner may leave alone in checkpoint " + title +
                                 " what was read of a newer one before that turned out to be damaged. The "
                                 "damaged one is marked: run the same command again"};
  }
  std::set<std::string> kept;
  for (const ItemDifference& d : load.differences) {
    if (d.kind == ItemDifference::kRenamed || d.kind == ItemDifference::kExtra) continue;
    if (d.kind != ItemDifference::kLeft && touched_.contains(d.name)) {
      return {Code::kMismatch,
              "checkpoint " + title + " does not restore \"" + d.name +
                  "\", which holds what was read of a newer checkpoint before that turned out to "
                  "be damaged. The damaged one is marked: run the same command again"};
    }
    kept.insert(d.name);
  }
  for (const ArraySpec& array : state_.layout.arrays) {
    if (!kept.contains(array.name)) touched_.insert(array.name);
  }
  for (const BlobSpec& blob : state_.blobs) {
    if (!kept.contains(blob.name)) touched_.insert(blob.name);
  }
  return OkStatus();
}

Result<JoinedPlans> RestoreLeader::Plan(const LoadedCheckpoint& checkpoint,
                                        std::vector<ItemDifference> differences) {
  Order order{.kind = Order::kPlan,
              .path = checkpoint.path,
              .index_hash = checkpoint.manifest.index_hash,
              .differences = std::move(differences),
              .step = checkpoint.manifest.step,
              .world_size_saved = checkpoint.manifest.world_size};
  CAIRN_ASSIGN_OR_RETURN(const std::vector<Outcome> outcomes,
                         members_.Ask([&](int) { return order; }, Members::kBound));
  Order all{.kind = Order::kPlanAll};
  for (const Outcome& outcome : outcomes) all.plans.push_back(outcome.plans.front());
  size_t bytes = 0;
  for (const std::string& plan : all.plans) bytes += plan.size();
  CAIRN_RETURN_IF_ERROR(CheckPlansFit(bytes));
  members_.Tell(0, all);
  CAIRN_ASSIGN_OR_RETURN(const Outcome changed, members_.Hear(0));
  CAIRN_RETURN_IF_ERROR(changed.status.Annotate("rank 0"));
  std::vector<ReadPlan> plans;
  for (const std::string& plan : changed.plans) {
    CAIRN_ASSIGN_OR_RETURN(plans.emplace_back(), DecodePlan(plan));
  }
  return JoinPlans(plans, checkpoint.index.saved.arrays, state_);
}

Order::Way RestoreLeader::Connect() {
  if (way_) return *way_;
  const ExchangeWay choice = ChooseWay(boot_.settings.exchange, inventories_);
  way_ = choice.way;
  std::string why_not = choice.why_not_mpi;
  if (*way_ == Order::kMpi) {
    const Status connected =
        members_.Ask([](int) { return Order{.kind = Order::kConnect}; }, kLoadBound).status();
    if (!connected.ok()) {
      way_ = Order::kSockets;
      why_not = connected.message();
    }
  }
  if (!why_not.empty()) {
    const std::string line = "the ranks hand each other what they read by sockets, not over MPI: " + why_not;
    choice.asked_for_it ? log_.Warn("--checkpoint-exchange=mpi cannot be had: ", line) : log_.Info(line);
  }
  return *way_;
}

// Has all members load `checkpoint`. Worst of their outcomes: a mismatch or a fault that proves nothing stops; damage falls back.
Result<Order> RestoreLeader::Offer(const LoadedCheckpoint& checkpoint, const std::string& title,
                                   const MatchOptions& match) {
  std::vector<BlobSpec> saved_blobs;
  for (const BlobItem& blob : checkpoint.blobs.items)
    saved_blobs.push_back({blob.name, static_cast<int>(blob.policy)});
  const std::vector<ArraySpec>& saved = checkpoint.index.saved.arrays;
  Matching matching = MatchItems(saved, saved_blobs, state_, match);
  JoinedPlans planned;
  if (match_.planner) {
    auto plans = Plan(checkpoint, std::move(matching.differences));
    if (plans.status().code() == Code::kDamage) return plans.status();
    if (!plans.ok())
      return plans.status().Annotate("checkpoint " + title + " could not be loaded; it is not marked");
    planned = *std::move(plans);
    matching = MatchItems(saved, saved_blobs, state_, match, &planned.fills);
  }
  if (!matching.refused.empty()) {
    return Status(Code::kMismatch,
                  "checkpoint " + title + " and the program differ:" + Joined(matching.refused) +
                      "\nThe checkpoint is unchanged and good. Run the program that made it," +
                      HowToAllow(matching.curable | match.allowed, matching.curable != 0) +
                      " or start anew with another "
                      "--checkpoint-dir (or, at the job's first life, --checkpoint-resume=never)");
  }
  Order load{.kind = Order::kLoad,
             .path = checkpoint.path,
             .index_hash = checkpoint.manifest.index_hash,
             .way = Connect(),
             .differences = std::move(matching.differences)};
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> plans, EncodePlans(planned.plans));
  Order wanted{.kind = Order::kWanted};
  if (match_.planner) wanted.state = EncodeState({.layout = std::move(planned.wanted)});
  CAIRN_RETURN_IF_ERROR(CheckPlansFit(wanted.state.size()));
  const bool same_world = checkpoint.manifest.world_size == static_cast<uint32_t>(boot_.world_size);
  std::vector<std::string> reset;
  MergedBlobs merged;
  for (const BlobItem& blob : checkpoint.blobs.items) {
    const auto name = matching.blobs.find(blob.name);
    if (name == matching.blobs.end()) continue;
    if (blob.policy == BlobPolicy::kMerge) {
      for (const auto& bytes : blob.by_rank) merged[name->second].push_back(bytes.value_or(""));
      continue;
    }
    if (same_world) continue;
    if (blob.policy == BlobPolicy::kRefuse) {
      return Status(Code::kMismatch,
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
  CAIRN_RETURN_IF_ERROR(MayKeep(load, title));
  const std::vector<LocalHolder> held = HeldOfCheckpoint(checkpoint);
  if (!held.empty()) {
    members_.TellAll(
        Order{.kind = Order::kNear, .path = checkpoint.path, .near = NearNodes(held, inventories_)});
  }
  if (match_.planner) members_.TellAll(wanted);
  for (const Order& part : TellMerged(checkpoint.path, std::move(merged))) members_.TellAll(part);
  const auto begin = std::chrono::steady_clock::now();
  const auto order_for = [&](int rank) {
    Order order = load;
    if (match_.planner) order.plans = {plans[static_cast<size_t>(rank)]};
    order.sources = SourcesOn(held, inventories_[static_cast<size_t>(rank)].node);
    for (const BlobItem& blob : checkpoint.blobs.items) {
      if (!same_world) break;
      const auto name = matching.blobs.find(blob.name);
      const auto& bytes = blob.by_rank[static_cast<size_t>(rank)];
      if (bytes && name != matching.blobs.end() && blob.policy != BlobPolicy::kMerge)
        order.blobs.emplace(name->second, *bytes);
    }
    return order;
  };
  auto outcomes = members_.Ask(order_for, kLoadBound);
  if (outcomes.status().code() == Code::kUnavailable) {
    log_.Warn("the ranks cannot hand data to each other (", outcomes.status().message(),
              "); each reads all that it needs instead");
    load.way = way_.emplace(Order::kAlone);
    outcomes = members_.Ask(order_for, kLoadBound);
  }
  // A rank may have given up messages that are still under way: what is loaded next must not meet them.
  if (!outcomes.ok() && way_ == Order::kMpi) way_ = Order::kSockets;
  Status worst = outcomes.status();
  if (worst.ok() && match_.planner)
    worst = members_.Ask([](int) { return Order{.kind = Order::kCommit}; }, kLoadBound).status();
  if (!worst.ok()) {
    return worst.code() == Code::kDamage
               ? worst
               : worst.Annotate("checkpoint " + title + " could not be loaded; it is not marked");
  }
  cost_ = {.saved_world_size = checkpoint.manifest.world_size};
  for (const Outcome& outcome : *outcomes) {
    cost_.read_bytes += outcome.read_bytes;
    cost_.near_bytes += outcome.near_bytes;
    cost_.needed_bytes += outcome.needed_bytes;
  }
  cost_.time = std::chrono::steady_clock::now() - begin;
  log_.Info("resumed at step ", checkpoint.manifest.step, " from ", checkpoint.name, ": ",
            FormatBytes(cost_.read_bytes), " read",
            cost_.near_bytes > 0 ? " (" + FormatBytes(cost_.near_bytes) + " in the memory of the nodes)" : "",
            load.way != Order::kAlone ? " for " + FormatBytes(cost_.needed_bytes) + " of state" : "",
            load.way == Order::kMpi ? " over MPI in " : " in ", FormatDuration(cost_.time),
            RanksThenAndNow(checkpoint.manifest.world_size, boot_.world_size));
  if (!matching.noted.empty()) {
    log_.Info("checkpoint and program differ, which --checkpoint-match or the program allows:",
              Joined(matching.noted));
  }
  for (const std::string& name : reset)
    log_.Info("blob \"", name, "\" is not restored: the number of ranks changed");
  Order order{.kind = Order::kProceed, .restored = true};
  order.step = checkpoint.manifest.step;
  order.label = checkpoint.manifest.label;
  order.world_size_saved = checkpoint.manifest.world_size;
  order.outputs = checkpoint.manifest.outputs;
  return order;
}

}  // namespace cairn
