#include "runtime/session/coordinator.h"

#include <signal.h>

#include <cmath>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using nlohmann::json;
using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Interval `auto`: Young's formula, sqrt(2 × cost × mean time between interruptions), with the cost of the last save.
constexpr double kMeanSecondsBetweenInterruptions = 24 * 3600;
constexpr Nanoseconds kFirstAutoInterval = std::chrono::minutes(5);
constexpr Nanoseconds kMinAutoInterval = std::chrono::minutes(1);
constexpr Nanoseconds kMaxAutoInterval = std::chrono::hours(1);

// A signal of unknown origin (somebody's kill): as long as Slurm's own default between SIGTERM and SIGKILL would be safe.
constexpr Nanoseconds kUnknownCauseBound = seconds(20);
// Slurm sends the user's signal to every rank of a step: what comes from other ranks within this time is the same request.
constexpr Nanoseconds kSameSignal = seconds(1);
// What must be left of the time before the deadline when a final save is durable: requeue and goodbye.
constexpr Nanoseconds kGoodbye = seconds(2);

std::string Join(const std::vector<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

std::string WhatTriggers(const Settings& settings) {
  std::vector<std::string> out;
  for (const Trigger trigger : {kTriggerPreempt, kTriggerTimeLimit, kTriggerRequest, kTriggerEnd}) {
    if (settings.on & trigger) out.emplace_back(TriggerName(trigger));
  }
  if (settings.on & kTriggerInterval) {
    if (settings.interval) out.push_back("every " + FormatDuration(*settings.interval));
    if (settings.interval_steps)
      out.push_back("every " + std::to_string(*settings.interval_steps) + " steps");
    if (settings.interval_auto) out.emplace_back("at an automatic interval");
  }
  return Join(out);
}

}  // namespace

Coordinator::Coordinator(const Bootstrap& boot, const std::string& session, Links links)
    : boot_(boot),
      session_(session),
      links_(std::move(links)),
      host_(links_.loop, links_.fabric),
      policy_(boot.settings, static_cast<int>(boot.identity.restart) + 1 < boot.settings.max_lives),
      tick_(links_.loop, [this] { Carry(leader_->OnTick(std::chrono::steady_clock::now())); }),
      interval_(links_.loop, [this] { OnInterval(); }),
      watch_(links_.loop, [this] { OnWatch(); }),
      desk_({[this] { return WhyNoSave(); },
             [this](const std::string& tag) { links_.trigger(kTriggerRequest, agreement::kNoLimit, tag); },
             [this] { return StatusJson(); }, [this](const ControlReply& reply) { host_.Tell(reply); }}),
      keeper_(boot, session,
              {links_.log, links_.mailbox, [this](int rank, const Order& order) { SendOrder(rank, order); },
               [this](const Order& order) { SendOrder(kAllRanks, order); },
               [this](const Identity& holder) {
                 auto answer = std::make_shared<std::promise<HolderInSlurm>>();
                 auto future = answer->get_future();
                 if (holder.job.empty() || holder.cluster != boot_.identity.cluster)
                   return HolderInSlurm::kUnknown;
                 HolderQuery query;
                 query.job = static_cast<uint32_t>(std::strtoul(holder.job.c_str(), nullptr, 10));
                 query.step = static_cast<uint32_t>(std::strtoul(holder.step.c_str(), nullptr, 10));
                 query.restart = static_cast<int>(holder.restart);
                 OnLoop([this, query, answer] {
                   host_.AskHolder(query, [answer](std::optional<HolderReply> reply) {
                     const Alive alive = reply ? reply->alive : Alive::kUnknown;
                     answer->set_value(alive == Alive::kYes  ? HolderInSlurm::kRunning
                                       : alive == Alive::kNo ? HolderInSlurm::kGone
                                                             : HolderInSlurm::kUnknown);
                   });
                 });
                 return future.get();
               }}) {}

Coordinator::~Coordinator() = default;

void Coordinator::OnClerk(std::function<void(Keeper& keeper)> fn) {
  clerk_.Run([this, fn = std::move(fn)] { fn(keeper_); });
}

// From the clerk. An order that cannot be sent (it is too large) ends the restore: whoever waits for its effect is told.
void Coordinator::SendOrder(int rank, const Order& order) {
  OnLoop([this, rank, payload = EncodeSessionMessage(order)] {
    const Status sent = rank == kAllRanks ? links_.fabric->Broadcast(Order::kType, payload)
                                          : links_.fabric->SendTo(rank, Order::kType, payload);
    if (sent.code() == Code::kInvalid) links_.mailbox->Break(sent.Annotate("the restore cannot be led"));
  });
}

void Coordinator::LeadOpen() {
  OnClerk([this](Keeper& keeper) {
    const Opened opened = keeper.Open();
    OnLoop([this, opened] { (void)links_.fabric->Broadcast(Opened::kType, EncodeSessionMessage(opened)); });
  });
}

void Coordinator::LeadRestore() {
  OnClerk([this](Keeper& keeper) {
    const Order order = keeper.Restore();
    OnLoop([this, order, before = keeper.restored_before()] {
      restored_before_ = before;
      // The machine must be there before the first request of a member that goes on.
      if (order.kind == Order::kProceed) StartSaving(order);
      (void)links_.fabric->Broadcast(Order::kType, EncodeSessionMessage(order));
    });
  });
}

void Coordinator::StartSaving(const Order& order) {
  agreement::LeaderOptions options;
  options.members = static_cast<uint32_t>(boot_.world_size);
  options.save_timeout = boot_.settings.save_timeout;
  options.save_at_end = (boot_.settings.on & kTriggerEnd) != 0;
  if (order.restored) options.committed_count = order.step;
  leader_.emplace(options);
  restored_step_ = order.step;
  if (boot_.settings.interval_steps) next_interval_count_ = order.step + *boot_.settings.interval_steps;
  links_.log->Info("saves at ", WhatTriggers(boot_.settings), "; keeps the last ", boot_.settings.keep_last);
  ScheduleInterval();
  if (boot_.settings.on & kTriggerTimeLimit) AskDeadline();
}

// ---- saves ----

void Coordinator::OnToLeader(int from, const std::string& payload) {
  auto message = agreement::DecodeToLeader(payload);
  if (!message.ok() || !leader_) {
    links_.log->Debug("ignored from rank ", from, ": ",
                      message.ok() ? "a message before the restore" : message.status().message());
    return;
  }
  std::optional<std::string> tag;
  const auto* request = std::get_if<agreement::Request>(&*message);
  if (request && from == 0 && request->reason == kTriggerRequest) tag = request->tag;
  auto actions = leader_->OnMessage(static_cast<agreement::Rank>(from), *std::move(message),
                                    std::chrono::steady_clock::now());
  if (tag) desk_.OnNumbered(*tag, leader_->requests());
  Carry(std::move(actions));
}

void Coordinator::Carry(agreement::LeaderActions actions) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  for (agreement::LeaderAction& action : actions) {
    if (auto* send = std::get_if<agreement::SendTo>(&action)) {
      (void)links_.fabric->SendTo(static_cast<int>(send->to), kToMemberMessage,
                                  agreement::Encode(send->message));
    } else if (auto* all = std::get_if<agreement::Broadcast>(&action)) {
      (void)links_.fabric->Broadcast(kToMemberMessage, agreement::Encode(all->message));
    } else if (auto* prepare = std::get_if<agreement::Prepare>(&action)) {
      OnClerk([this, p = *prepare, now](Keeper& keeper) {
        auto attempt = keeper.Prepare(p.count);
        OnLoop([this, p, attempt = std::move(attempt), now] {
          Carry(leader_->OnPrepared(p.id, attempt, now()));
        });
      });
    } else if (auto* commit = std::get_if<agreement::Commit>(&action)) {
      OnClerk([this, c = std::move(*commit), now](Keeper& keeper) {
        auto report = keeper.Commit(c);
        OnLoop([this, id = c.id, report, now] {
          if (report.ok()) last_save_ = *report;
          Carry(leader_->OnCommitted(id, report.status(), now()));
        });
        if (report.ok()) keeper.Prune();
      });
    } else if (std::holds_alternative<agreement::Finish>(action)) {
      // A program that ends because the job is being ended (its own SIGTERM handler, say) has not come to its end. One that has says so in
      // its next life.
      const bool finished = policy_.state() == ExitPolicy::State::kRunning;
      if (!finished)
        links_.log->Info(
            "the program ended while the job is being ended: the run is not recorded as finished");
      OnClerk([this, finished, now](Keeper& keeper) {
        const Status status = finished ? keeper.Finish() : OkStatus();
        OnLoop([this, status, now] { Carry(leader_->OnFinished(status, now())); });
      });
    } else if (auto* ended = std::get_if<agreement::SaveEnded>(&action)) {
      OnSaveEnded(*ended);
    } else if (auto* note = std::get_if<agreement::Note>(&action)) {
      links_.log->Debug(note->text);
    }
  }
  ScheduleTick();
}

void Coordinator::ScheduleTick() {
  const auto next = leader_->next_tick();
  if (!next) return tick_.Stop();
  const auto delay = duration_cast<milliseconds>(*next - std::chrono::steady_clock::now()) + milliseconds(1);
  tick_.Once(std::max(delay, milliseconds(0)));
}

void Coordinator::OnSaveEnded(const agreement::SaveEnded& ended) {
  if (ended.status.ok() && last_save_) {
    const SaveReport& save = *last_save_;
    // Once, though it may answer several requests.
    if (std::exchange(said_save_, save.name) != save.name)
      links_.log->Info("saved step ", save.step, " (", save.trigger, "): ", FormatBytes(save.bytes),
                       ", stall ", FormatDuration(Nanoseconds(save.stall_ns)), ", written in ",
                       FormatDuration(Nanoseconds(save.drain_ns)), ", ", save.name);
    last_failure_.clear();
    if (!told_host_) host_.Tell(Saved{.dir = boot_.settings.dir, .session = session_, .step = save.step});
    told_host_ = true;
  } else if (!ended.status.ok()) {
    last_failure_ = ended.status.message();
    const auto state = leader_->state();
    const bool late = ended.reason == kTriggerInterval && (state == agreement::LeaderState::kFinishing ||
                                                           state == agreement::LeaderState::kClosed);
    // An interval that comes round at the very end is nothing to report.
    if (late) return links_.log->Debug("no save (interval): ", last_failure_);
    links_.log->Warn("no save (", TriggerName(ended.reason), "): ", last_failure_,
                     ended.reason == kTriggerEnd ? "" : ". The job goes on");
    OnClerk([reason = std::string(TriggerName(ended.reason)), why = last_failure_](Keeper& keeper) {
      keeper.Abandon();
      keeper.Journal("dropped", {{"trigger", Keeper::Quote(reason)}, {"why", Keeper::Quote(why)}});
    });
  }
  desk_.OnSaveEnded(ended, last_save_ ? last_save_->name : "");
  if (ended.reason == kTriggerPreempt || ended.reason == kTriggerTimeLimit) {
    const bool stuck = restored_before_ == restored_step_ && ended.count <= restored_step_;
    Act(policy_.OnFinalSave(ended.status.ok(), !stuck));
  }
  ScheduleInterval();
  ScheduleWatch();  // the notice follows the cost of the last save
}

void Coordinator::ScheduleInterval() {
  const Settings& settings = boot_.settings;
  if (!(settings.on & kTriggerInterval)) return;
  if (settings.interval_steps) {
    const auto progress = links_.progress();
    const int64_t left = next_interval_count_ - progress.count;
    const Nanoseconds eta = progress.period * std::max<int64_t>(left, 0) / 2;
    interval_.Once(std::clamp(duration_cast<milliseconds>(eta), milliseconds(1), milliseconds(1000)));
    return;
  }
  std::optional<Nanoseconds> every = settings.interval;
  if (settings.interval_auto) {
    every = kFirstAutoInterval;
    if (last_save_) {
      const double cost = 1e-9 * static_cast<double>(last_save_->stall_ns) +
                          1e-11 * static_cast<double>(last_save_->drain_ns);
      const double best = std::sqrt(2 * cost * kMeanSecondsBetweenInterruptions);
      every = std::clamp(duration_cast<Nanoseconds>(std::chrono::duration<double>(best)), kMinAutoInterval,
                         kMaxAutoInterval);
    }
  }
  if (every) interval_.Once(duration_cast<milliseconds>(*every));
}

void Coordinator::OnInterval() {
  if (boot_.settings.interval_steps) {
    const auto progress = links_.progress();
    // As many boundaries ahead as the agreement needs, so that the save falls on the multiple or soon after it.
    const int64_t lead = 2 + (progress.period.count() > 0 ? milliseconds(2) / progress.period : 0);
    if (progress.count + lead < next_interval_count_) return ScheduleInterval();
    while (next_interval_count_ <= progress.count + lead)
      next_interval_count_ += *boot_.settings.interval_steps;
  }
  links_.trigger(kTriggerInterval, agreement::kNoLimit, "");
}

void Coordinator::OnPeer(int rank, PeerState state, const std::string& why) {
  const bool ends = state == PeerState::kGone || state == PeerState::kLeft;
  const bool over = closed_ || policy_.state() == ExitPolicy::State::kLeft ||
                    (leader_ && leader_->state() == agreement::LeaderState::kClosed);
  if (ends && !over) {
    links_.log->Warn(
        "rank ", rank, state == PeerState::kLeft ? " has left without cairn_finalize" : " is gone: " + why,
        "; this life makes no more saves. To resume, run the same command again with --checkpoint-dir=",
        boot_.settings.dir);
    OnClerk([rank, why](Keeper& keeper) {
      keeper.Journal("gone", {{"rank", std::to_string(rank)}, {"why", Keeper::Quote(why)}});
    });
  } else if (!ends) {
    links_.log->Debug("rank ", rank, " is ", PeerStateName(state), ": ", why);
  }
  if (!leader_) return;
  const auto now = std::chrono::steady_clock::now();
  const auto member = static_cast<agreement::Rank>(rank);
  switch (state) {
    case PeerState::kAlive:
      return Carry(leader_->OnRejoined(member, now));
    case PeerState::kSuspect:
      return Carry(leader_->OnSuspect(member, now));
    case PeerState::kGone:
      return Carry(leader_->OnGone(member, why, now));
    case PeerState::kLeft:
      return Carry(leader_->OnGone(member, "left without cairn_finalize", now));
  }
}

// ---- the end of the job ----

milliseconds Coordinator::Notice() const {
  if (boot_.settings.notice) return duration_cast<milliseconds>(*boot_.settings.notice);
  const auto last =
      last_save_ ? duration_cast<milliseconds>(Nanoseconds(last_save_->stall_ns + last_save_->drain_ns))
                 : milliseconds(0);
  return seconds(20) + 3 * last;
}

void Coordinator::AskDeadline() {
  AskSlurm([this](const CauseReply& reply) { LearnDeadline(reply); });
}

void Coordinator::LearnDeadline(const CauseReply& reply) {
  const auto now = std::chrono::steady_clock::now();
  if (reply.answered) {
    deadline_.OnAnswer(reply.seconds_left, now);
  } else if (deadline_.OnSilence(now)) {
    links_.log->Info("when the time limit ends is not known: ", reply.why, ". Slurm will be asked again");
  }
  ScheduleWatch();
}

void Coordinator::ScheduleWatch() {
  const auto at = deadline_.next(Notice());
  if (!at) return watch_.Stop();
  const auto delay = duration_cast<milliseconds>(*at - std::chrono::steady_clock::now());
  watch_.Once(std::max(delay, milliseconds(0)));
}

void Coordinator::OnWatch() {
  if (closed_ || policy_.state() != ExitPolicy::State::kRunning) return;
  deadline_.known() ? Act(policy_.OnDeadlineWatch()) : AskDeadline();
}

void Coordinator::OnSignal(int from, const SignalSeen& signal) {
  links_.log->Debug("signal ", signal.signo, signal.from_slurm ? " from Slurm" : " from elsewhere");
  if (signal.signo == SIGTERM) return Act(policy_.OnSignal());
  const auto now = std::chrono::steady_clock::now();
  if (now - requested_ < kSameSignal && requesters_.insert(from).second) return;
  requested_ = now;
  requesters_ = {from};
  const std::string why = WhyNoSave();
  if (!why.empty()) return links_.log->Debug("signal ", signal.signo, " saves nothing: ", why);
  links_.trigger(kTriggerRequest, agreement::kNoLimit, "");
}

void Coordinator::AskSlurm(std::function<void(const CauseReply& reply)> done) {
  host_.AskCause(Notice(), [done = std::move(done)](std::optional<CauseReply> reply) {
    CauseReply silence;
    silence.why = "Slurm could not be asked";
    silence.answered = false;
    done(reply ? *reply : silence);
  });
}

void Coordinator::OnCause(const CauseReply& reply) {
  const auto before = policy_.state();
  const auto action = policy_.OnCause(
      {reply.cause, reply.seconds_left, reply.may_requeue, reply.why, reply.answered}, reply.batch);
  if (before == ExitPolicy::State::kAsking && policy_.state() == ExitPolicy::State::kRunning)
    LearnDeadline(reply);
  if (action != ExitPolicy::Action::kNothing) {
    const std::string left = reply.seconds_left ? "; " + std::to_string(*reply.seconds_left) + " s left" : "";
    const std::string what =
        reply.cause == Cause::kUnknown
            ? "SIGTERM of unknown cause" + (reply.why.empty() ? "" : " (" + reply.why + ")")
            : std::string(CauseName(reply.cause));
    const bool saving = action == ExitPolicy::Action::kFinalSave && can_save();
    const bool saved = before == ExitPolicy::State::kAskingAgain;
    links_.log->Info(what, left, saving ? ": saving" : saved ? "" : ": no save");
    OnClerk([cause = std::string(CauseName(reply.cause)), why = reply.why,
             count = links_.progress().count](Keeper& keeper) {
      keeper.Journal(
          "ending",
          {{"cause", Keeper::Quote(cause)}, {"why", Keeper::Quote(why)}, {"count", std::to_string(count)}});
    });
  }
  Act(action);
}

void Coordinator::Act(ExitPolicy::Action action) {
  using Action = ExitPolicy::Action;
  const auto& verdict = policy_.verdict();
  switch (action) {
    case Action::kNothing:
      return;
    case Action::kAskCause:
      return AskSlurm([this](const CauseReply& reply) { OnCause(reply); });
    case Action::kFinalSave: {
      // Before the end of the restore there is nothing to save: another life begins where this one would have. At its time limit it
      // would be as slow again.
      if (!leader_) return Act(policy_.OnFinalSave(verdict.cause == Cause::kPreempted, true));
      if (!can_save()) return Act(policy_.OnFinalSave(false, true));
      Nanoseconds left = kUnknownCauseBound;
      if (verdict.seconds_left)
        left = std::max<Nanoseconds>(seconds(*verdict.seconds_left) - kGoodbye, seconds(1));
      return links_.trigger(verdict.cause == Cause::kTimeLimit ? kTriggerTimeLimit : kTriggerPreempt, left,
                            "");
    }
    case Action::kRequeue:
      return host_.AskRequeue([this](std::optional<RequeueReply> reply) {
        const bool requeued = reply && reply->requeued;
        const std::string text = reply ? reply->text : "the host process did not answer the requeue";
        links_.log->Info(text);
        OnClerk([requeued, text](Keeper& keeper) {
          keeper.Journal(requeued ? "requeued" : "not_requeued", {{"text", Keeper::Quote(text)}});
        });
        Act(policy_.OnRequeued(requeued));
      });
    case Action::kAwaitKill:
      if (!policy_.requeued() && verdict.cause != Cause::kRequeued) {
        const std::string why = policy_.WhyNoRequeue();
        links_.log->Info(
            "not requeued by Cairn", why.empty() ? "" : " (" + why + ")",
            "; to resume, run the same command again with --checkpoint-dir=", boot_.settings.dir);
      }
      return Leave(LeaveOrder::kStay);
    case Action::kLeave:
      return Leave(LeaveOrder::kTerminate);
    case Action::kExit:
      return Leave(LeaveOrder::kExit);
  }
}

void Coordinator::Leave(LeaveOrder::Kind kind) {
  if (kind != LeaveOrder::kStay) {
    const int64_t count = links_.progress().count;
    const int64_t newest = last_save_ ? last_save_->step : restored_step_;
    links_.log->Info("leaving at step ", count,
                     newest > 0 ? "; the newest checkpoint holds step " + std::to_string(newest)
                     : leader_  ? "; there is no checkpoint"
                                : ", before the restore");
    OnClerk([count](Keeper& keeper) { keeper.Journal("leaving", {{"step", std::to_string(count)}}); });
  }
  (void)links_.fabric->Broadcast(LeaveOrder::kType,
                                 EncodeSessionMessage(LeaveOrder{kind, boot_.settings.exit_code}));
}

// ---- the `cairn` command ----

void Coordinator::OnHost(uint16_t type, const std::string& payload) {
  if (host_.OnHost(type, payload)) return;
  if (type != ControlRequest::kType) return;
  const auto request = DecodeHostMessage<ControlRequest>(payload);
  if (request.ok()) desk_.OnRequest(*request);
}

std::string Coordinator::WhyNoSave() const {
  if (!leader_) return "the job has not come to its first step yet";
  if (!can_save()) return "this life makes no more saves";
  if (!(boot_.settings.on & kTriggerRequest)) return "this job does not save on request (--checkpoint-on)";
  return "";
}

std::string Coordinator::StatusJson() const {
  const auto progress = links_.progress();
  json out = {{"dir", boot_.settings.dir},
              {"job", boot_.identity.job},
              {"step_id", boot_.identity.step},
              {"restart", boot_.identity.restart},
              {"world_size", boot_.world_size},
              {"count", progress.count},
              {"step_ms", 1e-6 * static_cast<double>(progress.period.count())},
              {"restored_step", restored_step_},
              {"save", leader_ ? std::string(agreement::LeaderStateName(leader_->state())) : "not started"},
              {"ending", std::string(ExitStateName(policy_.state()))}};
  if (last_save_) {
    out["last_save"] = {{"checkpoint", last_save_->name},  {"step", last_save_->step},
                        {"label", last_save_->label},      {"trigger", last_save_->trigger},
                        {"bytes", last_save_->bytes},      {"stall_ns", last_save_->stall_ns},
                        {"drain_ns", last_save_->drain_ns}};
  }
  if (!last_failure_.empty()) out["last_failure"] = last_failure_;
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

void Coordinator::Close(std::function<void()> done) {
  closed_ = true;
  for (Timer* timer : {&tick_, &interval_, &watch_}) timer->Stop();
  host_.Tell(Left{session_});
  OnClerk([this, done = std::move(done)](Keeper& keeper) {
    keeper.Close();
    OnLoop(done);
  });
}

}  // namespace cairn
