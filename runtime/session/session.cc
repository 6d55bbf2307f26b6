#include "runtime/session/session.h"

#include <unistd.h>

#include <csignal>
#include <future>
#include <utility>

namespace cairn {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The others are given as long as a shared file system may take to claim the directory from a holder that is not known to be dead.
constexpr milliseconds kOpenedBound = seconds(120);
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
      boundary_(boot_, log_.get(),
                [this](uint16_t type, std::string payload) { SendToLeader(type, std::move(payload)); }),
      restore_(boot_, name_, items_,
               {log_.get(), &mailbox_, &addresses_, &boundary_,
                [this](uint16_t type, std::string payload) { SendToLeader(type, std::move(payload)); }}) {}

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
  CAIRN_ASSIGN_OR_RETURN(session->opened_, DecodeSessionMessage<Opened>(letter.payload));
  if (!session->opened_.status.ok()) return session->opened_.status;
  return session;
}

Status Session::Connect() {
  CAIRN_ASSIGN_OR_RETURN(loop_, Loop::Start("cairn-loop"));
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
      OnReady(status);
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
        boundary_.OnTrigger(reason, time_left, tag);
      };
      coordinator_ =
          std::make_unique<Coordinator>(boot_, name_,
                                        Coordinator::Links{loop_.get(), fabric_.get(), log_.get(), &mailbox_,
                                                           trigger, [this] { return boundary_.progress(); }});
    }
    const auto on_signal = [this](int signo, bool from_slurm) { OnSignal({signo, from_slurm}); };
    signals_ = std::make_unique<Signals>(loop_.get(), log_.get(), boot_.settings.signal, on_signal);
    sampler_ = std::make_unique<Timer>(loop_.get(), [this] { boundary_.Sample(); });
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
  boundary_.DrainOut(kExitDrainBound);
  mailbox_.Break({Code::kCancelled, "this process is leaving"});
  auto departed = std::make_shared<std::promise<void>>();
  auto future = departed->get_future();
  loop_->Post([this, departed] { Depart([departed] { departed->set_value(); }); });
  if (future.wait_for(kGoodbyeBound) != std::future_status::ready || !boundary_.IsIdle(kGoodbyeBound) ||
      (coordinator_ && !coordinator_->ClerkIsIdle(kGoodbyeBound))) {
    log_->Warn("the directory ", boot_.settings.dir, " does not answer; leaving without a goodbye");
    loop_->Post([this] {  // the program may go on without us
      sampler_.reset();
      signals_.reset();
    });
    return false;
  }
  boundary_.EndThreads();
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

// ---- the application's side ----

Result<cairn_report> Session::Restore() {
  const Inside inside(this);
  restore_begun_ = true;
  auto report = restore_.Run(opened_, [this](const MatchOptions& match) {
    if (coordinator_) loop_->Post([this, match] { coordinator_->LeadRestore(match); });
  });
  started_ = report.ok();
  return report;
}

void Session::Arrive() {
  const Inside inside(this);
  if (!boundary_.IsRehearsed()) return boundary_.Arrive();
  if (!boundary_.Rehearse()) return;
  loop_->Post([this] { Abandon([] { _exit(0); }); });
  for (;;) pause();
}

void Session::AwaitLateCopies() {
  const Inside inside(this);
  boundary_.Fence();
}

void Session::QuietBegin() {
  const Inside inside(this);
  boundary_.QuietBegin();
}

void Session::QuietEnd() {
  const Inside inside(this);
  boundary_.QuietEnd();
}

void Session::Save(const std::string& tag) {
  const Inside inside(this);
  boundary_.Save(tag);
}

Status Session::SetMetric(const std::string& name, double value) {
  const Inside inside(this);
  return boundary_.SetMetric(name, value);
}

Status Session::Wait(std::optional<milliseconds> bound) {
  const Inside inside(this);
  return boundary_.Wait(bound);
}

Status Session::Finalize() {
  const Inside inside(this);
  const Status status = boundary_.Finish();
  if (status.ok() || !told_to_leave_) return status;
  if (boot_.rank == 0)
    log_->Info("the program has come to its end while the job is ending: its last steps are not saved");
  return OkStatus();
}

// ---- the loop's side ----

void Session::OnMessage(int from, uint16_t type, std::string payload) {
  switch (type) {
    case kToMemberMessage: {
      auto message = agreement::DecodeToMember(payload);
      if (!message.ok()) return log_->Debug("ignored: ", message.status().message());
      return boundary_.OnMessage(*std::move(message));
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
    case kHurryMessage:
      return boundary_.Hurry();
    case kLeaveMessage:
      if (const auto order = DecodeSessionMessage<LeaveOrder>(payload); order.ok()) OnLeave(*order);
      return;
    case kOrderMessage:
      if (const auto order = DecodeSessionMessage<Order>(payload); order.ok()) {
        if (order->kind == Order::kProceed) boundary_.SetCount(order->step);
        stopped_ |= order->kind == Order::kStop;
        if (order->kind == Order::kAbandon) return restore_.AbandonRound(order->round);
        if (order->kind == Order::kGo) return restore_.BeginRound(order->round);
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
    restore_.EndTransfers({Code::kUnavailable, line});
  }
  if (ends && rank == 0) OnLeaderGone(state, line);
  if (coordinator_) coordinator_->OnPeer(rank, state, why);
}

// Nobody is left who could learn why the job ends and have it saved: SIGTERM has its own effect again, also one that waits for its answer. Under
// `cairn run` a leader that is lost ends the life, as any rank does.
void Session::OnLeaderGone(PeerState state, const std::string& line) {
  const bool over = leaving_ || stopped_ || boundary_.finished();
  boundary_.OnLeaderGone(line);
  if (over) return;
  const bool lost = state == PeerState::kGone;
  if (lost && boot_.rank == 1) log_->Warn(line, "; this life makes no more saves");  // once for all ranks
  if (unanswered_ || (lost && boot_.supervised)) Abandon([this] { signals_->Terminate(); });
}

void Session::OnReady(const Status& status) {
  if (status.ok() && coordinator_) coordinator_->LeadOpen();
  if (!unanswered_) return;
  if (!status.ok()) return signals_->Terminate();
  OnSignal(*unanswered_);
}

void Session::OnSignal(const SignalSeen& signal) {
  if (signal.signo == SIGINT && boot_.settings.signal != SIGINT) return OnInterrupt();
  if (leaving_) return;
  if (signal.signo == SIGTERM) unanswered_ = signal;
  (void)fabric_->SendToLeader(SignalSeen::kType, EncodeSessionMessage(signal));
  const PeerState leader = fabric_->peer_state(0);
  if (unanswered_ && (leader == PeerState::kGone || leader == PeerState::kLeft))
    Abandon([this] { signals_->Terminate(); });
}

// Ctrl-C waits for nothing but the line of the journal that tells the next life how this one ended.
void Session::OnInterrupt() {
  const auto act = [this] { signals_->Interrupt(); };
  coordinator_ && !leaving_ ? coordinator_->OnInterrupt(act) : act();
}

void Session::OnLeave(const LeaveOrder& order) {
  switch (order.kind) {
    case LeaveOrder::kStay:
      unanswered_.reset();
      return signals_->RunOwnHandler();
    case LeaveOrder::kTerminate:
      told_to_leave_ = true;
      return Abandon([this] { signals_->Terminate(); });
    case LeaveOrder::kExit:
      return Abandon([code = order.exit_code] { _exit(code); });
  }
}

void Session::Abandon(std::function<void()> then) {
  const std::string why = "the job is ending";
  mailbox_.Break({Code::kCancelled, why});
  restore_.EndTransfers({Code::kCancelled, why});
  boundary_.OnLeaderGone(why);
  Depart(std::move(then));
}

}  // namespace cairn
