#include "runtime/session/restore_share.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "runtime/io/write_engine.h"
#include "runtime/session/loader.h"
#include "runtime/session/rescue.h"
#include "runtime/staging/leftovers.h"

namespace cairn {
namespace {

constexpr std::chrono::milliseconds kOrderBound = std::chrono::hours(24);
constexpr std::chrono::milliseconds kProgressEvery{1};
constexpr std::chrono::seconds kMovingEvery{20};  // well below Members::kStandstill

}  // namespace

RestoreShare::RestoreShare(const Bootstrap& boot, std::string name, Items& items, Links links)
    : boot_(boot), name_(std::move(name)), items_(items), links_(std::move(links)) {}

Result<cairn_report> RestoreShare::Run(const Opened& opened,
                                       const std::function<void(const MatchOptions& match)>& lead) {
  opened_ = opened;
  Inventory inventory{.node = boot_.node};
  inventory.mpi = boot_.settings.exchange == ExchangeBy::kTcp
                      ? Status(Code::kNotFound, "it is told to use TCP")
                      : OfferMpi(boot_.rank, boot_.world_size, boot_.settings.exchange == ExchangeBy::kMpi);
  if (boot_.first_on_node) {
    if (const auto leftovers = Leftovers::Open(Tier()); leftovers.ok()) inventory.slots = leftovers->List();
  }
  links_.send(Inventory::kType, EncodeSessionMessage(inventory));
  links_.send(kShareMessage, EncodeShare(items_));
  match_.planner = planner_calls_.has_value();
  lead(match_);
  return Follow();
}

Result<cairn_report> RestoreShare::Follow() {
  for (;;) {
    CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter, NextOrder());
    CAIRN_ASSIGN_OR_RETURN(const Order order, DecodeSessionMessage<Order>(letter.payload));
    if (order.kind == Order::kStop) return order.status;
    if (order.kind == Order::kLayout) {
      CAIRN_ASSIGN_OR_RETURN(state_, DecodeState(order.state));
      PlaceTables();
      continue;
    }
    if (order.kind == Order::kAskRoom) {
      links_.send(TableRoom::kType,
                  EncodeSessionMessage(TableRoom{RoomsThatChanged(items_, state_, boot_.rank)}));
      continue;
    }
    if (order.kind == Order::kRoom) {
      CAIRN_RETURN_IF_ERROR(SetRooms(order.table_rooms, &state_));
      PlaceTables();
      continue;
    }
    if (order.kind == Order::kNear) {
      near_ = order;
      continue;
    }
    if (order.kind == Order::kForeign) {
      foreign_ = order;
      continue;
    }
    if (order.kind == Order::kMerged) {
      if (std::exchange(saved_blobs_of_, order.path) != order.path) saved_blobs_.clear();
      for (const auto& [name, by_member] : order.merged_blobs) {
        std::vector<std::string>& all = saved_blobs_[name];
        all.insert(all.end(), by_member.begin(), by_member.end());
      }
      continue;
    }
    if (order.kind == Order::kWanted) {
      wanted_ = order.state;
      continue;
    }
    if (order.kind == Order::kProceed) {
      if (order.restored) CutOutputs(order.outputs);
      if (!order.restored) saved_blobs_.clear();
      links_.boundary->SetLabel(order.label);
      planner_.reset();
      if (order.way == Order::kMpi && carrier_) carrier_->Free();
      carrier_.reset();
      state_ = {};
      wanted_ = {};
      near_ = foreign_ = {};
      cairn_report report{};
      report.restored = order.restored ? 1 : 0;
      report.step = order.step;
      report.label = order.label;
      report.world_size_saved = static_cast<int>(order.world_size_saved);
      report.finished = order.finished ? 1 : 0;
      report.match = static_cast<int>(boot_.settings.match.value_or(match_.allowed));
      if (!run_id_.empty()) report.run_id = run_id_.c_str();
      CountItems(&report);
      return report;
    }
    Report(Answer(order));
  }
}

// Others may still wait for what this member has sent over the carrier: there is no next order before all are through.
Result<Mailbox::Letter> RestoreShare::NextOrder() {
  while (carrier_) {
    auto letter = links_.mailbox->Take(kOrderMessage, 0, kProgressEvery);
    if (letter.status().code() != Code::kTimeout) return letter;
    carrier_->Progress();
  }
  return links_.mailbox->Take(kOrderMessage, 0, kOrderBound);
}

void RestoreShare::Report(const Outcome& outcome) {
  links_.send(Outcome::kType, EncodeSessionMessage(outcome));
}

// An answer, whatever comes: the others wait for it. The program's load planner throws nothing if it keeps its word, but needs memory.
Outcome RestoreShare::Answer(const Order& order) {
  try {
    Outcome outcome;
    outcome.status = Obey(order, &outcome);
    return outcome;
  } catch (const std::bad_alloc&) {
    return {.status = {Code::kOutOfMemory, "out of memory"}};
  } catch (const std::exception& e) {
    return {.status = {Code::kInternal, std::string("an exception in a step of the restore: ") + e.what()}};
  } catch (...) {
    return {.status = {Code::kInternal, "an unknown exception in a step of the restore"}};
  }
}

void RestoreShare::CutOutputs(const OutputLengths& saved) {
  const Outputs::CutReport report = items_.outputs().CutBack(saved);
  for (const std::string& note : report.notes)
    boot_.rank == 0 ? links_.log->Info(note) : links_.log->Debug(note);
  for (const std::string& warning : report.warnings) links_.log->Warn(warning);
}

void RestoreShare::PlaceTables() {
  const Layout& layout = state_.layout;
  for (size_t t = 0; t < items_.tables().size(); ++t) {
    int64_t first = 0;  // rows of the ranks before this one
    for (const Piece& piece : layout.pieces) {
      if (static_cast<int>(piece.rank) < boot_.rank &&
          layout.arrays[piece.array].name == items_.tables()[t].name)
        first += piece.box.extent[0];
    }
    for (const ArraySpec& array : layout.arrays) {
      if (array.name == items_.tables()[t].name) items_.PlaceTable(t, first, array.shape[0]);
    }
  }
}

void RestoreShare::CountItems(cairn_report* report) {
  if (report->restored == 0) differences_.clear();
  // Optional arrays of other members are none of this one's items.
  std::erase_if(differences_, [this](const ItemDifference& difference) {
    return difference.kind != ItemDifference::kExtra && !items_.Find(difference.name).ok();
  });
  report->difference_count = static_cast<int>(differences_.size());
  if (report->restored == 0) return;
  report->items_loaded = static_cast<int>(items_.arrays().size() + items_.blobs().size());
  for (const ItemDifference& difference : differences_) {
    if (difference.kind == ItemDifference::kReset) ++report->items_reset;
    if (difference.kind != ItemDifference::kRenamed && difference.kind != ItemDifference::kExtra)
      --report->items_loaded;
  }
}

LocalTierOptions RestoreShare::Tier() const {
  LocalTierOptions tier;
  tier.setting = boot_.settings.local;
  tier.epilog_cleans = boot_.epilog_cleans;
  tier.job = boot_.identity.job.empty() ? "0" : boot_.identity.job;
  tier.node = boot_.node;
  return tier;
}

Status RestoreShare::Obey(const Order& order, Outcome* outcome) {
  switch (order.kind) {
    case Order::kShowLayout: {
      CAIRN_ASSIGN_OR_RETURN(const Leftovers leftovers, Leftovers::Open(Tier()));
      CAIRN_ASSIGN_OR_RETURN(outcome->layout, leftovers.ReadLayout(order.path));
      return OkStatus();
    }
    case Order::kRescue: {
      CAIRN_ASSIGN_OR_RETURN(const Leftovers leftovers, Leftovers::Open(Tier()));
      return RescueShare(order, leftovers, boot_.settings.mode, boot_.settings.writer, outcome);
    }
    case Order::kForget: {
      if (!boot_.first_on_node) return OkStatus();
      CAIRN_ASSIGN_OR_RETURN(const Leftovers leftovers, Leftovers::Open(Tier()));
      leftovers.Remove(order.run_id);
      return OkStatus();
    }
    case Order::kPlan:
      return Plan(order, outcome);
    case Order::kPlanAll:
      return PlanForAll(order, outcome);
    case Order::kConnect:
      return Connect(order);
    case Order::kLoad:
      return Load(order, outcome);
    case Order::kCommit:
      return planner_->Commit();
    case Order::kPrepare:
      return Prepare(order, outcome);
    case Order::kLayout:
    case Order::kAskRoom:
    case Order::kRoom:
    case Order::kNear:
    case Order::kForeign:
    case Order::kMerged:
    case Order::kWanted:
    case Order::kGo:
    case Order::kAbandon:
    case Order::kProceed:
    case Order::kStop:
      break;
  }
  return {Code::kInternal, "an order that is no step of a restore"};
}

// Plans and slots; a failure costs the saves, not the job.
Status RestoreShare::Prepare(const Order& order, Outcome* outcome) {
  Saver::Options options;
  options.rank = static_cast<uint32_t>(boot_.rank);
  options.ranks_on_node = boot_.ranks_on_node;
  options.epoch = opened_.epoch;
  options.claim = opened_.claim;
  options.run_id = run_id_ = order.run_id;
  options.run_directory = boot_.settings.dir;
  options.keeps_layout = boot_.first_on_node;
  options.tier = Tier();
  options.local_limit = boot_.settings.local_limit;
  options.copy_threads = boot_.settings.copy_threads;
  options.mode = boot_.settings.mode;
  options.settings = boot_.settings.given;
  options.writer = boot_.settings.writer;
  // The node's ranks share its limit; those of one node are about equally large.
  if (boot_.settings.drain_limit > 0) {
    const auto ranks = static_cast<uint64_t>(std::max(boot_.ranks_on_node, 1));
    options.drain_limit = std::max<uint64_t>(boot_.settings.drain_limit / ranks, 1);
  }
  if (options.writer != Writer::kPwrite) {
    if (const Status refused = CheckIoUring(); !refused.ok())
      links_.log->Debug("files are written by threads: ", refused.message());
  }
  options.shared_folder = order.shared_folder;
  links_.boundary->Equip(Status(Code::kUnavailable, "saves are being prepared"), nullptr);  // frees memory
  auto saver = Saver::Make(options, state_, items_);
  std::unique_ptr<PartnerLink> partner;
  if (saver.ok() && order.partner >= 0) partner = LinkPartner(**saver, order);
  const Status status = saver.status();
  if (saver.ok()) {
    outcome->warning = (*saver)->warning();
    outcome->folder = (*saver)->folder();
    for (const std::string& note : (*saver)->notes())
      boot_.rank == 0 ? links_.log->Info(note) : links_.log->Debug(note);
  } else {
    links_.log->Debug("no saves from this rank: ", status.message());
  }
  links_.boundary->Equip(std::move(saver), std::move(partner));
  return status;
}

// That it fails costs the copies, not the saves.
std::unique_ptr<PartnerLink> RestoreShare::LinkPartner(const Saver& saver, const Order& order) {
  const auto held = [this](uint32_t ward, uint64_t save_id) {
    links_.send(PartnerHeld::kType, EncodeSessionMessage(PartnerHeld{save_id, ward}));
  };
  auto slots = saver.MakePartnerSlots(state_.layout, order.wards, held);
  if (!slots.ok()) {
    links_.log->Warn("rank ", boot_.rank,
                     " keeps no copies of another node's snapshots: ", slots.status().message());
    slots = saver.MakePartnerSlots(state_.layout, {}, held);
  }
  if (!slots.ok()) return nullptr;
  auto link = PartnerLink::Make(Bulk(kPartnerPurpose), links_.addresses, order.partner, *std::move(slots),
                                [this](const std::string& line) { links_.log->Debug(line); });
  if (link.ok()) return *std::move(link);
  links_.log->Warn("no partner copies of rank ", boot_.rank, ": ", link.status().message());
  return nullptr;
}

Status RestoreShare::Plan(const Order& order, Outcome* outcome) {
  if (!planner_calls_) return {Code::kInvalid, "it has no load planner, and rank 0 has one"};
  planner_ = std::make_unique<LoadPlanner>(*planner_calls_, state_, items_, boot_.rank);
  CAIRN_ASSIGN_OR_RETURN(Index index, ReadIndex(order, foreign_));
  CAIRN_ASSIGN_OR_RETURN(const ReadPlan plan, planner_->PlanLocally(order, std::move(index)));
  CAIRN_ASSIGN_OR_RETURN(outcome->plans, EncodePlans({plan}));
  return OkStatus();
}

Status RestoreShare::PlanForAll(const Order& order, Outcome* outcome) {
  std::vector<ReadPlan> plans;
  for (const std::string& plan : order.plans) {
    CAIRN_ASSIGN_OR_RETURN(plans.emplace_back(), DecodePlan(plan));
  }
  CAIRN_ASSIGN_OR_RETURN(plans, planner_->PlanForAll(std::move(plans)));
  CAIRN_ASSIGN_OR_RETURN(outcome->plans, EncodePlans(plans));
  return OkStatus();
}

// Breaks when `order`'s round is abandoned, and when transfers are over.
Result<std::shared_ptr<Breaker>> RestoreShare::JoinRound(const Order& order) {
  const std::lock_guard lock(mutex_);
  CAIRN_RETURN_IF_ERROR(transfers_over_);
  if (order.round <= abandoned_) return Status(Code::kCancelled, "another rank has failed");
  if (!life_) {
    CAIRN_ASSIGN_OR_RETURN(life_, Breaker::Make());
  }
  CAIRN_ASSIGN_OR_RETURN(round_, Breaker::MakePart(life_));
  return round_;
}

CarriedRound RestoreShare::Carry(const Order& order, const std::shared_ptr<Breaker>& round) {
  CarriedRound carried{.carrier = carrier_.get(), .round = round};
  {
    const std::lock_guard lock(mutex_);
    carried.life = life_;
  }
  carried.ready = [this] {
    begun_ = 0;
    Report({.word = Outcome::kReady});
  };
  carried.all_ready = [this, number = order.round] { return begun_ == number; };
  carried.moved = [this, told = std::chrono::steady_clock::now()]() mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - told < kMovingEvery) return;
    told = now;
    Report({.word = Outcome::kMoving});
  };
  carried.failed = [this](const Status& why) { Report({.word = Outcome::kMoving, .status = why}); };
  return carried;
}

// Nothing that can fail is between the meeting and the library: the others rely on this rank by then.
Status RestoreShare::Connect(const Order& order) {
  CAIRN_ASSIGN_OR_RETURN(const std::shared_ptr<Breaker> round, JoinRound(order));
  CAIRN_RETURN_IF_ERROR(Carry(order, round).Meet());
  CAIRN_ASSIGN_OR_RETURN(carrier_, MpiCarrier::Connect(*round));
  return OkStatus();
}

// Arrays, then this member's blobs.
Status RestoreShare::Load(const Order& order, Outcome* outcome) {
  CAIRN_ASSIGN_OR_RETURN(const std::shared_ptr<Breaker> round, JoinRound(order));
  std::optional<CarriedRound> carried;
  if (order.way == Order::kMpi) {
    if (!carrier_) return {Code::kInternal, "there is no communicator"};
    carried = Carry(order, round);
  }
  if (planner_calls_ && order.plans.empty())
    return {Code::kInvalid, "it has a load planner, and rank 0 has none"};
  std::optional<PlannedLoad> planned;
  if (planner_calls_) {
    CAIRN_ASSIGN_OR_RETURN(State wanted, DecodeState(wanted_));
    planned = PlannedLoad{planner_.get(), std::move(wanted.layout)};
  }
  NearCopies near;
  if (const auto leftovers = Leftovers::Open(Tier()); leftovers.ok()) {
    for (const RescueSource& source : order.sources)
      near.here.merge(leftovers->ImagePaths(source.folder, source.slot));
  }
  if (near_.path == order.path) near.nodes = near_.near;
  CAIRN_ASSIGN_OR_RETURN(const LoadStats stats,
                         LoadShare(order, foreign_, near, saved_blobs_, state_, items_, std::move(planned),
                                   {Bulk("restore " + std::to_string(order.round)), links_.addresses, round},
                                   carried ? &*carried : nullptr));
  outcome->needed_bytes = stats.needed_bytes;
  outcome->read_bytes = stats.read_bytes;
  outcome->near_bytes = stats.near_bytes;
  for (const RegisteredBlob& blob : items_.blobs()) {
    const auto it = order.blobs.find(blob.name);
    if (it == order.blobs.end()) continue;
    const size_t saved = it->second.size();
    if (blob.size == nullptr ? saved != blob.capacity : saved > blob.capacity) {
      return {Code::kMismatch, "blob \"" + blob.name + "\": saved " + std::to_string(saved) +
                                   " bytes, registered " + std::to_string(blob.capacity)};
    }
    std::copy_n(reinterpret_cast<const std::byte*>(it->second.data()), saved, blob.data);
    if (blob.size != nullptr) *blob.size = saved;
  }
  differences_ = order.differences;
  return OkStatus();
}

Status RestoreShare::SavedBlob(const std::string& name, int member, std::string_view* bytes) const {
  *bytes = {};
  const bool known = std::any_of(
      items_.blobs().begin(), items_.blobs().end(),
      [&](const RegisteredBlob& blob) { return blob.name == name && blob.policy == CAIRN_BLOB_MERGE; });
  if (!known) return {Code::kInvalid, "cairn_saved_blob: \"" + name + "\" is no blob of CAIRN_BLOB_MERGE"};
  const auto it = saved_blobs_.find(name);
  if (it != saved_blobs_.end() && member >= 0 && static_cast<size_t>(member) < it->second.size())
    *bytes = it->second[static_cast<size_t>(member)];
  return OkStatus();
}

void RestoreShare::AbandonRound(uint32_t round) {
  const std::lock_guard lock(mutex_);
  abandoned_ = std::max(abandoned_, round);
  if (round_) round_->Break({Code::kCancelled, "another rank has failed"});
}

void RestoreShare::EndTransfers(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (transfers_over_.ok()) transfers_over_ = why;
  if (life_) life_->Break(why);
}

BulkIdentity RestoreShare::Bulk(const std::string& purpose) const {
  return {.rank = boot_.rank, .key = boot_.key, .session = name_, .token = boot_.token, .purpose = purpose};
}

}  // namespace cairn
