#include "runtime/session/session.h"

#include <future>
#include <utility>

#include "runtime/io/file.h"
#include "runtime/session/loader.h"
#include "runtime/session/rescue.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// The others are given as long as a shared file system may take to claim the directory from a holder that is not known to be dead.
constexpr milliseconds kOpenedBound = seconds(120);
constexpr milliseconds kOrderBound = std::chrono::hours(24);
// A process that exits in the middle: so long for what is staged, and for each step of the goodbye.
constexpr milliseconds kExitDrainBound = seconds(20);
constexpr milliseconds kGoodbyeBound = seconds(3);
// A cancelled job's ranks must be gone within a second, whatever the file system does.
constexpr milliseconds kDirectoryGoodbyeBound(500);

}  // namespace

Session::Session(std::string name, const Bootstrap& boot)
    : name_(std::move(name)),
      boot_(boot),
      log_(std::make_unique<Log>(boot.settings.log,
                                 boot.rank == 0 ? "" : "rank " + std::to_string(boot.rank))),
      addresses_([this](int rank, std::string message) {
        loop_->Post([this, rank, message = std::move(message)] {
          (void)fabric_->SendTo(rank, kBulkAddressMessage, message);
        });
      }),
      member_({.boundary_wait = boot.settings.boundary_wait}) {}

Result<Session::Pointer> Session::Open(const std::string& name, const Bootstrap& boot) {
  Pointer session(new Session(name, boot));
  const Status connected = session->Connect();
  if (!connected.ok()) {
    if (boot.settings.require) return connected;
    const std::string line =
        "NOT PROTECTED: " + connected.message() + ". The job goes on without checkpoints";
    boot.first_on_node ? session->log_->Warn(line) : session->log_->Debug(line);
    return Pointer();
  }
  CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter,
                         session->mailbox_.Take(kOpenedMessage, 0, kOpenedBound));
  CAIRN_ASSIGN_OR_RETURN(const Opened opened, DecodeSessionMessage<Opened>(letter.payload));
  if (!opened.status.ok()) return opened.status;
  session->epoch_ = opened.epoch;
  return session;
}

Status Session::Connect() {
  CAIRN_ASSIGN_OR_RETURN(loop_, Loop::Start("cairn-loop"));
  worker_ = std::make_unique<Worker>();
  auto ready = std::make_shared<std::promise<Status>>();
  auto future = ready->get_future();
  loop_->Run([this, ready] {
    FabricOptions options;
    options.rank = boot_.rank;
    options.world_size = boot_.world_size;
    options.node = boot_.node;
    options.key = boot_.key;
    options.session = name_;
    options.token = boot_.token;
    options.rendezvous = boot_.rendezvous;
    FabricCallbacks callbacks;
    callbacks.on_ready = [this, ready](Status status) {
      if (status.ok() && coordinator_) coordinator_->LeadOpen();
      ready->set_value(std::move(status));
    };
    callbacks.on_message = [this](int from, uint16_t type, std::string payload) {
      OnMessage(from, type, std::move(payload));
    };
    callbacks.on_peer = [this](int rank, PeerState state, const std::string& why) {
      OnPeer(rank, state, why);
    };
    callbacks.on_host = [this](uint16_t type, std::string payload) {
      if (coordinator_) coordinator_->OnHost(type, payload);
    };
    callbacks.on_refused = [this](const std::string& line) { log_->Warn(line); };
    fabric_ = std::make_unique<Fabric>(loop_.get(), std::move(options), std::move(callbacks));
    if (boot_.rank == 0) {
      const auto trigger = [this](Trigger reason, Nanoseconds time_left, const std::string& tag) {
        // A drain under way is hurried as well: this save waits for it.
        if (reason == kTriggerPreempt || reason == kTriggerTimeLimit)
          (void)fabric_->Broadcast(kHurryMessage, "");
        Lock lock(mutex_);
        Carry(member_.OnTrigger(reason, time_left, tag), lock);
      };
      coordinator_ =
          std::make_unique<Coordinator>(boot_, name_,
                                        Coordinator::Links{loop_.get(), fabric_.get(), log_.get(), &mailbox_,
                                                           trigger, [this] { return progress(); }});
    }
    const auto on_signal = [this](int signo, bool from_slurm) {
      if (leaving_) return;
      (void)fabric_->SendToLeader(SignalSeen::kType, EncodeSessionMessage(SignalSeen{signo, from_slurm}));
    };
    signals_ = std::make_unique<Signals>(loop_.get(), log_.get(), boot_.settings.signal, on_signal);
    sampler_ = std::make_unique<Timer>(loop_.get(), [this] { SampleProgress(); });
    sampler_->Every(milliseconds(500));
  });
  return future.get();
}

void Session::Closer::operator()(Session* session) const {
  if (session->Leave()) delete session;
}

// 1. Wait, bounded, for what is staged to be durable; then cancel what is still being written.
// 2. Say goodbye, bounded: the directory, then the other members.
// 3. End the threads, each after it has shown that it is idle.
bool Session::Leave() {
  if (!loop_) return true;  // it never began
  if (inside_) return false;
  {
    Lock lock(mutex_);
    if (saver_) saver_->Hurry();
    changed_.wait_for(lock, kExitDrainBound, [this] { return !member_.has_snapshot(); });
    if (saver_) saver_->Cancel();
  }
  mailbox_.Break({Code::kCancelled, "this process is leaving"});
  auto departed = std::make_shared<std::promise<void>>();
  auto future = departed->get_future();
  loop_->Post([this, departed] { Depart([departed] { departed->set_value(); }); });
  if (future.wait_for(kGoodbyeBound) != std::future_status::ready || !worker_->IsIdle(kGoodbyeBound) ||
      (coordinator_ && !coordinator_->ClerkIsIdle(kGoodbyeBound))) {
    log_->Warn("the directory ", boot_.settings.dir, " does not answer; leaving without a goodbye");
    loop_->Post([this] {  // the program may go on without us
      sampler_.reset();
      signals_.reset();
    });
    return false;
  }
  worker_.reset();
  partner_.reset();
  if (coordinator_) coordinator_->JoinClerk();
  loop_->Run([this] {
    goodbye_.reset();
    sampler_.reset();
    signals_.reset();
    coordinator_.reset();
    fabric_.reset();
  });
  loop_.reset();
  return true;
}

void Session::Depart(std::function<void()> done) {
  if (departed_) return done();
  on_departed_.push_back(std::move(done));
  if (std::exchange(leaving_, true)) return;
  const auto leave = [this] {
    if (!goodbye_) return;
    goodbye_.reset();
    fabric_->Leave([this] {
      departed_ = true;
      for (const auto& fn : std::exchange(on_departed_, {})) fn();
    });
  };
  goodbye_ = std::make_unique<Timer>(loop_.get(), leave);
  goodbye_->Once(kDirectoryGoodbyeBound);
  if (coordinator_) return coordinator_->Close(leave);
  leave();
}

void Session::SendToLeader(uint16_t type, std::string payload) {
  loop_->Post([this, type, payload = std::move(payload)] { (void)fabric_->SendToLeader(type, payload); });
}

BulkIdentity Session::Bulk(const std::string& purpose) const {
  return {.rank = boot_.rank, .key = boot_.key, .session = name_, .token = boot_.token, .purpose = purpose};
}

// ---- restore ----

Result<cairn_report> Session::Restore() {
  const Inside inside(this);
  Inventory inventory{.node = boot_.node};
  if (boot_.first_on_node) {
    if (const auto leftovers = Leftovers::Open(Tier()); leftovers.ok()) inventory.slots = leftovers->List();
  }
  SendToLeader(Inventory::kType, EncodeSessionMessage(inventory));
  SendToLeader(kShareMessage, EncodeShare(items_));
  if (coordinator_) loop_->Post([this, match = match_] { coordinator_->LeadRestore(match); });
  for (;;) {
    CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter, mailbox_.Take(kOrderMessage, 0, kOrderBound));
    CAIRN_ASSIGN_OR_RETURN(const Order order, DecodeSessionMessage<Order>(letter.payload));
    if (order.kind == Order::kStop) return order.status;
    if (order.kind == Order::kLayout) {
      CAIRN_ASSIGN_OR_RETURN(state_, DecodeState(order.state));
      continue;
    }
    if (order.kind == Order::kProceed) {
      label_ = order.label;
      started_ = true;
      state_ = {};
      cairn_report report{};
      report.restored = order.restored ? 1 : 0;
      report.step = order.step;
      report.label = order.label;
      report.world_size_saved = static_cast<int>(order.world_size_saved);
      report.finished = order.finished ? 1 : 0;
      report.match = static_cast<int>(boot_.settings.match.value_or(match_.allowed));
      CountItems(&report);
      return report;
    }
    Outcome outcome;
    outcome.status = Obey(order, &outcome);
    SendToLeader(Outcome::kType, EncodeSessionMessage(outcome));
  }
}

void Session::CountItems(cairn_report* report) {
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

LocalTierOptions Session::Tier() const {
  LocalTierOptions tier;
  tier.setting = boot_.settings.local;
  tier.epilog_cleans = boot_.epilog_cleans;
  tier.job = boot_.identity.job.empty() ? "0" : boot_.identity.job;
  tier.node = boot_.node;
  return tier;
}

Status Session::Obey(const Order& order, Outcome* outcome) {
  switch (order.kind) {
    case Order::kShowLayout: {
      CAIRN_ASSIGN_OR_RETURN(const Leftovers leftovers, Leftovers::Open(Tier()));
      CAIRN_ASSIGN_OR_RETURN(outcome->layout, leftovers.ReadLayout(order.path));
      return OkStatus();
    }
    case Order::kRescue: {
      CAIRN_ASSIGN_OR_RETURN(const Leftovers leftovers, Leftovers::Open(Tier()));
      CAIRN_ASSIGN_OR_RETURN(outcome->records,
                             RescueShare(order, leftovers, boot_.settings.mode, boot_.settings.writer));
      return OkStatus();
    }
    case Order::kForget: {
      if (!boot_.first_on_node) return OkStatus();
      CAIRN_ASSIGN_OR_RETURN(const Leftovers leftovers, Leftovers::Open(Tier()));
      leftovers.Remove(order.run_id);
      return OkStatus();
    }
    case Order::kLoad:
      return Load(order, outcome);
    case Order::kPrepare:
      return Prepare(order, outcome);
    case Order::kLayout:
    case Order::kAbandon:
    case Order::kProceed:
    case Order::kStop:
      break;
  }
  return {Code::kInternal, "an order that is no step of a restore"};
}

// Plans and slots; a failure costs the saves, not the job.
Status Session::Prepare(const Order& order, Outcome* outcome) {
  Saver::Options options;
  options.rank = static_cast<uint32_t>(boot_.rank);
  options.ranks_on_node = boot_.ranks_on_node;
  options.epoch = epoch_;
  options.run_id = order.run_id;
  options.run_directory = boot_.settings.dir;
  options.keeps_layout = boot_.first_on_node;
  options.tier = Tier();
  options.copy_threads = boot_.settings.copy_threads;
  options.mode = boot_.settings.mode;
  options.writer = boot_.settings.writer;
  // The node's ranks share its limit; those of one node are about equally large.
  if (boot_.settings.drain_limit > 0) {
    const auto ranks = static_cast<uint64_t>(std::max(boot_.ranks_on_node, 1));
    options.drain_limit = std::max<uint64_t>(boot_.settings.drain_limit / ranks, 1);
  }
  if (options.writer != Writer::kPwrite) {
    if (const Status refused = CheckIoUring(); !refused.ok())
      log_->Debug("files are written by threads: ", refused.message());
  }
  auto saver = Saver::Make(options, state_, items_);
  std::unique_ptr<PartnerLink> partner;
  if (saver.ok() && order.partner >= 0) partner = LinkPartner(**saver, order);
  const Lock lock(mutex_);
  saver_status_ = saver.status();
  if (!saver.ok()) {
    log_->Debug("no saves from this rank: ", saver.status().message());
    return saver.status();
  }
  saver_ = *std::move(saver);
  partner_ = std::move(partner);
  outcome->warning = saver_->warning();
  for (const std::string& note : saver_->notes()) boot_.rank == 0 ? log_->Info(note) : log_->Debug(note);
  return OkStatus();
}

// That it fails costs the copies, not the saves.
std::unique_ptr<PartnerLink> Session::LinkPartner(const Saver& saver, const Order& order) {
  const auto held = [this](uint32_t ward, uint64_t save_id) {
    SendToLeader(PartnerHeld::kType, EncodeSessionMessage(PartnerHeld{save_id, ward}));
  };
  auto slots = saver.MakePartnerSlots(state_.layout, order.wards, held);
  if (!slots.ok()) {
    log_->Warn("rank ", boot_.rank,
               " keeps no copies of another node's snapshots: ", slots.status().message());
    slots = saver.MakePartnerSlots(state_.layout, {}, held);
  }
  if (!slots.ok()) return nullptr;
  auto link = PartnerLink::Make(Bulk(kPartnerPurpose), &addresses_, order.partner, *std::move(slots),
                                [this](const std::string& line) { log_->Debug(line); });
  if (link.ok()) return *std::move(link);
  log_->Warn("no partner copies of rank ", boot_.rank, ": ", link.status().message());
  return nullptr;
}

// Arrays, then this member's blobs.
Status Session::Load(const Order& order, Outcome* outcome) {
  std::map<uint32_t, std::string> near;
  if (const auto leftovers = Leftovers::Open(Tier()); leftovers.ok()) {
    for (const RescueSource& source : order.sources)
      near.merge(leftovers->ImagePaths(source.folder, source.slot));
  }
  CAIRN_ASSIGN_OR_RETURN(const std::shared_ptr<Breaker> transfer, Breaker::Make());
  {
    const Lock lock(mutex_);
    CAIRN_RETURN_IF_ERROR(transfers_over_);
    if (order.round <= abandoned_) return {Code::kCancelled, "another rank has failed"};
    transfer_ = transfer;
  }
  CAIRN_ASSIGN_OR_RETURN(const LoadStats stats,
                         LoadShare(order, near, state_.layout, items_,
                                   {Bulk("restore " + std::to_string(order.round)), &addresses_, transfer}));
  outcome->needed_bytes = stats.needed_bytes;
  outcome->read_bytes = stats.read_bytes;
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
  saved_blobs_ = order.merged_blobs;
  differences_ = order.differences;
  return OkStatus();
}

Status Session::SavedBlob(const std::string& name, int member, std::string_view* bytes) const {
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

void Session::AbandonRound(uint32_t round) {
  const Lock lock(mutex_);
  abandoned_ = std::max(abandoned_, round);
  if (transfer_) transfer_->Break({Code::kCancelled, "another rank has failed"});
}

void Session::EndTransfers(const Status& why) {
  const Lock lock(mutex_);
  if (transfers_over_.ok()) transfers_over_ = why;
  if (transfer_) transfer_->Break(why);
}

// ---- boundaries ----

void Session::AtBoundary(int64_t count) {
  const Inside inside(this);
  Lock lock(mutex_);
  Carry(member_.OnBoundary(count, label_, Clock::now()), lock);
  Hold(lock);
}

void Session::QuietBegin() {
  const Inside inside(this);
  Lock lock(mutex_);
  if (!std::exchange(quiet_, true)) Carry(member_.OnQuietBegin(count_.load(), label_), lock);
}

void Session::QuietEnd() {
  const Inside inside(this);
  Lock lock(mutex_);
  if (!std::exchange(quiet_, false)) return;
  Carry(member_.OnQuietEnd(Clock::now()), lock);
  Hold(lock);
}

void Session::Hold(Lock& lock) {
  while (member_.holds_application()) {
    if (snapshot_) {
      const agreement::TakeSnapshot order = *snapshot_;
      snapshot_.reset();
      TakeSnapshot(order, lock);
    } else if (const auto until = member_.wait_until()) {
      if (changed_.wait_until(lock, *until) == std::cv_status::timeout)
        Carry(member_.OnWaitExpired(Clock::now()), lock);
    } else {
      changed_.wait(lock);
    }
  }
}

void Session::TakeSnapshot(const agreement::TakeSnapshot& order, Lock& lock) {
  Status status = saver_ ? saver_->Acquire(order.id, order.boundary) : saver_status_;
  if (status.ok()) {
    const SnapshotStamp stamp{label_, count_.load(), order.mode == agreement::Mode::kFinal};
    lock.unlock();
    if (collect_) collect_();
    status = saver_->Copy(stamp);
    lock.lock();
    if (partner_ && status.ok()) {
      partner_->Send(saver_->BeginPartnerCopy(), saver_->copy_cancelled(), [this](const Status& sent) {
        if (!sent.ok()) log_->Debug("no partner copy: ", sent.message());
        const Lock own(mutex_);
        saver_->PartnerCopyEnded();
      });
    }
  }
  Carry(member_.OnSnapshotted(order.id, status), lock);
}

void Session::Carry(agreement::MemberActions actions, Lock& lock) {
  for (agreement::MemberAction& action : actions) {
    if (auto* send = std::get_if<agreement::Send>(&action)) {
      SendToLeader(kToLeaderMessage, agreement::Encode(send->message));
    } else if (auto* arm = std::get_if<agreement::Arm>(&action)) {
      armed_.store(arm->boundary, std::memory_order_seq_cst);
      Carry(member_.OnArmed(count_.load(std::memory_order_seq_cst)), lock);
    } else if (std::holds_alternative<agreement::Disarm>(action)) {
      armed_.store(kNever, std::memory_order_seq_cst);
    } else if (auto* snapshot = std::get_if<agreement::TakeSnapshot>(&action)) {
      if (snapshot->mode == agreement::Mode::kQuiet) {
        worker_->Run([this, order = *snapshot] {
          Lock own(mutex_);
          TakeSnapshot(order, own);
        });
      } else {
        snapshot_ = *snapshot;
      }
    } else if (auto* drain = std::get_if<agreement::StartDrain>(&action)) {
      saver_->BeginDrain();
      SayDrain();
      worker_->Run([this, order = *drain] { Drain(order); });
    } else if (auto* ended = std::get_if<agreement::Ended>(&action)) {
      End(*ended);
    } else if (auto* answered = std::get_if<agreement::Answered>(&action)) {
      if (!answered->status.ok()) log_->Debug("a requested save was not made: ", answered->status.message());
    } else if (auto* closed = std::get_if<agreement::Closed>(&action)) {
      closed_ = closed->status;
    }
  }
  // Nobody waits for this snapshot any more: the program need not stand still until it is written.
  if (saver_ && member_.state() == agreement::MemberState::kDiscarding) saver_->Cancel();
  changed_.notify_all();
}

void Session::Drain(const agreement::StartDrain& order) {
  Result<MemberRecord> record = saver_->Drain(order.attempt);
  Lock lock(mutex_);
  SayDrain();
  saver_->DrainEnded();
  Carry(member_.OnDrained(order.id, record.ok() ? Result<std::string>(EncodeSessionMessage(*record))
                                                : Result<std::string>(record.status())),
        lock);
}

void Session::End(const agreement::Ended& ended) {
  if (!saver_) return;
  switch (ended.outcome) {
    case agreement::Outcome::kCommitted:
      return saver_->Settle(ended.id, Saver::Worth::kDurable);
    case agreement::Outcome::kLocal:
      return saver_->Settle(ended.id, Saver::Worth::kLocal);
    case agreement::Outcome::kDropped:
      return saver_->Settle(ended.id, Saver::Worth::kNone);
  }
}

void Session::Save(const std::string& tag) {
  const Inside inside(this);
  if (!(boot_.settings.on & kTriggerRequest))
    return log_->Debug("cairn_save: --checkpoint-on leaves requests out");
  Lock lock(mutex_);
  Carry(member_.OnTrigger(kTriggerRequest, agreement::kNoLimit, tag), lock);
}

Status Session::Wait(std::optional<milliseconds> bound) {
  // The program stands at a boundary while it waits: the save that it waits for may be taken here.
  const bool was_quiet = quiet_;
  QuietBegin();
  bool rested = false;
  {
    const Inside inside(this);
    Lock lock(mutex_);
    Carry(member_.OnWait(), lock);
    const auto rest = [this] { return member_.at_rest(); };
    if (bound) {
      rested = changed_.wait_for(lock, *bound, rest);
    } else {
      changed_.wait(lock, rest);
      rested = true;
    }
  }
  if (!was_quiet) QuietEnd();
  return rested ? OkStatus() : Status(Code::kTimeout, "a save is still under way");
}

Status Session::Finalize() {
  const Inside inside(this);
  Lock lock(mutex_);
  if (saver_) saver_->Hurry();  // the program computes no more
  Carry(member_.OnFinalized(count_.load(), label_), lock);
  Hold(lock);
  return closed_.value_or(OkStatus());
}

// ---- the loop's side ----

void Session::OnMessage(int from, uint16_t type, std::string payload) {
  switch (type) {
    case kToMemberMessage: {
      auto message = agreement::DecodeToMember(payload);
      if (!message.ok()) return log_->Debug("ignored: ", message.status().message());
      Lock lock(mutex_);
      Carry(member_.OnMessage(*std::move(message), progress(), Clock::now()), lock);
      return;
    }
    case kToLeaderMessage:
      return coordinator_->OnToLeader(from, payload);
    case kHeldMessage:
      if (const auto held = DecodeSessionMessage<PartnerHeld>(payload); held.ok())
        coordinator_->OnPartnerHeld(*held);
      return;
    case kSignalMessage:
      if (const auto signal = DecodeSessionMessage<SignalSeen>(payload); signal.ok())
        coordinator_->OnSignal(from, *signal);
      return;
    case kBulkAddressMessage:
      return addresses_.OnMessage(from, payload);
    case DrainSeen::kType:
      if (const auto seen = DecodeSessionMessage<DrainSeen>(payload); seen.ok())
        coordinator_->OnDrainSeen(from, *seen);
      return;
    case kHurryMessage: {
      Lock lock(mutex_);
      if (saver_) saver_->Hurry();
      return;
    }
    case kLeaveMessage:
      if (const auto order = DecodeSessionMessage<LeaveOrder>(payload); order.ok()) OnLeave(*order);
      return;
    case kOrderMessage:
      if (const auto order = DecodeSessionMessage<Order>(payload); order.ok()) {
        // Before the next message: a Poll must not find the count of before the restore.
        if (order->kind == Order::kProceed) count_.store(order->step);
        if (order->kind == Order::kAbandon) return AbandonRound(order->round);
      }
      return mailbox_.Put({from, type, std::move(payload)});
    default:
      mailbox_.Put({from, type, std::move(payload)});
  }
}

void Session::OnPeer(int rank, PeerState state, const std::string& why) {
  const bool ends = state == PeerState::kGone || state == PeerState::kLeft;
  const std::string line =
      "rank " + std::to_string(rank) + (state == PeerState::kLeft ? " has left" : " is gone: " + why);
  if (ends) {
    mailbox_.Break({Code::kUnavailable, line});
    EndTransfers({Code::kUnavailable, line});
  }
  if (ends && rank == 0) {
    Lock lock(mutex_);
    Carry(member_.OnLeaderGone(line), lock);
  }
  if (coordinator_) coordinator_->OnPeer(rank, state, why);
}

void Session::OnLeave(const LeaveOrder& order) {
  switch (order.kind) {
    case LeaveOrder::kStay:
      return signals_->RunOwnHandler();
    case LeaveOrder::kTerminate:
      return Abandon([this] { signals_->Terminate(); });
    case LeaveOrder::kExit:
      return Abandon([code = order.exit_code] { _exit(code); });
  }
}

void Session::Abandon(std::function<void()> then) {
  const std::string why = "the job is ending";
  mailbox_.Break({Code::kCancelled, why});
  EndTransfers({Code::kCancelled, why});
  {
    Lock lock(mutex_);
    Carry(member_.OnLeaderGone(why), lock);
  }
  Depart(std::move(then));
}

void Session::SampleProgress() {
  const int64_t count = count_.load(std::memory_order_relaxed);
  const auto now = Clock::now();
  if (count > sampled_count_ && sampled_at_ != Clock::time_point{}) {
    period_ = std::chrono::duration_cast<Nanoseconds>(now - sampled_at_) / (count - sampled_count_);
  }
  if (count > sampled_count_ || sampled_at_ == Clock::time_point{}) {
    sampled_count_ = count;
    sampled_at_ = now;
  }
  // However many ranks there are, the leader hears no more than a thousand of them a second.
  if (now - drain_said_ < milliseconds(boot_.world_size)) return;
  drain_said_ = now;
  Lock lock(mutex_);
  SayDrain();
}

void Session::SayDrain() {
  if (!saver_) return;
  if (const auto seen = saver_->seen()) SendToLeader(DrainSeen::kType, EncodeSessionMessage(*seen));
}

agreement::Progress Session::progress() { return {count_.load(std::memory_order_seq_cst), period_}; }

}  // namespace cairn
