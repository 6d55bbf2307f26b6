#include "runtime/session/coordinator.h"

#include <signal.h>

#include <cmath>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/session/members.h"
#include "runtime/session/restore_leader.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using nlohmann::json;
using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Slurm sends a signal to every rank of a step: what comes from other ranks within this time is the same one.
constexpr Nanoseconds kSameSignal = seconds(1);
// Somebody sits there and waits for the program to end; a directory that hangs must not keep it.
constexpr milliseconds kInterruptBound(500);
constexpr seconds kProgressPause(60);  // between two lines of the journal that tell how far the program is

std::string Join(const std::vector<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

std::string WhatTriggers(const Settings& settings, const SaveInterval& interval) {
  std::vector<std::string> out;
  for (const Trigger trigger : {kTriggerPreempt, kTriggerTimeLimit, kTriggerRequest, kTriggerEnd}) {
    if (settings.on & trigger) out.emplace_back(TriggerName(trigger));
  }
  if (const std::string every = interval.Describe(); every != "never") out.push_back(every);
  return Join(out);
}

}  // namespace

Coordinator::Coordinator(const Bootstrap& boot, const std::string& session, Links links)
    : boot_(boot),
      session_(session),
      links_(std::move(links)),
      host_(links_.loop, links_.fabric),
      tick_(links_.loop, [this] { Carry(leader_->OnTick(std::chrono::steady_clock::now())); }),
      interval_timer_(links_.loop, [this] { OnInterval(); }),
      interrupt_timer_(links_.loop, [this] { Interrupted(); }),
      progress_timer_(links_.loop, [this] { TellProgress(); }),
      interval_(boot.settings),
      desk_({[this] { return WhyNoSave(); },
             [this](const std::string& tag) { links_.trigger(kTriggerRequest, agreement::kNoLimit, tag); },
             [this] { return WhyNoResize(); }, [this](const std::string& nodes) { ending_.OnResize(nodes); },
             [this] { return StatusJson(); }, [this](const ControlReply& reply) { host_.Tell(reply); }}),
      ending_(boot, {.loop = links_.loop,
                     .host = &host_,
                     .log = links_.log,
                     .stand = [this] { return Stand(); },
                     .save = [this](Trigger reason, Nanoseconds left) { links_.trigger(reason, left, ""); },
                     .leave =
                         [this](LeaveOrder::Kind kind) {
                           (void)links_.fabric->Broadcast(
                               LeaveOrder::kType,
                               EncodeSessionMessage(LeaveOrder{kind, boot_.settings.exit_code}));
                         },
                     .journal =
                         [this](std::string_view event, const Keeper::Fields& fields) {
                           OnClerk([event = std::string(event), fields](Keeper& keeper) {
                             keeper.Journal(event, fields);
                           });
                         },
                     .after_journal =
                         [this](std::function<void()> then) {
                           OnClerk([this, then = std::move(then)](Keeper&) { OnLoop(then); });
                         }}),
      keeper_(boot, session,
              {links_.log,
               [this](const Identity& holder) {
                 auto answer = std::make_shared<std::promise<HolderInSlurm>>();
                 auto future = answer->get_future();
                 const std::optional<HolderQuery> query = QueryAbout(holder, boot_.identity.cluster);
                 if (!query) return HolderInSlurm::kUnknown;
                 OnLoop([this, query, answer] {
                   host_.AskHolder(*query, [answer](std::optional<HolderReply> reply) {
                     const Alive alive = reply ? reply->alive : Alive::kUnknown;
                     answer->set_value(alive == Alive::kYes  ? HolderInSlurm::kRunning
                                       : alive == Alive::kNo ? HolderInSlurm::kGone
                                                             : HolderInSlurm::kUnknown);
                   });
                 });
                 return future.get();
               }}),
      clerk_([log = links_.log](const Status& thrown) {
        log->Warn("work on the directory has failed: ", thrown.message());
      }) {}

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

void Coordinator::LeadRestore(const MatchOptions& match) {
  OnClerk([this, match](Keeper& keeper) {
    Members members(boot_.world_size,
                    {links_.mailbox, [this](int rank, const Order& order) { SendOrder(rank, order); },
                     [this](const Order& order) { SendOrder(kAllRanks, order); }});
    const Order order = RestoreLeader(boot_, match, members, keeper).Lead();
    OnLoop([this, order, before = keeper.BeginOfLifeBefore(), own = !keeper.newest().empty()] {
      restored_before_ = before;
      // The machine must be there before the first request of a member that goes on.
      if (order.kind == Order::kProceed) StartSaving(order);
      // What the lives before have saved and not copied.
      if (order.kind == Order::kProceed && own) TellSaved(order.step);
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
  interval_.Start(order.step);
  costs_.OnIdle(order.step, std::chrono::steady_clock::now());
  links_.log->Info("saves at ", WhatTriggers(boot_.settings, interval_), "; keeps ",
                   DescribeKeep(boot_.settings.keep));
  ScheduleInterval();
  told_count_ = order.step;
  progress_timer_.Every(kProgressPause);
  ending_.Start();
}

// So that a life that is killed outright has said how far it had come.
void Coordinator::TellProgress() {
  const int64_t count = links_.progress().count;
  if (std::exchange(told_count_, count) == count) return;
  OnClerk([count](Keeper& keeper) { keeper.Journal("progress", {{"count", std::to_string(count)}}); });
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
  MeasureIdle();
  for (agreement::LeaderAction& action : actions) {
    if (auto* send = std::get_if<agreement::SendTo>(&action)) {
      (void)links_.fabric->SendTo(static_cast<int>(send->to), kToMemberMessage,
                                  agreement::Encode(send->message));
    } else if (auto* all = std::get_if<agreement::Broadcast>(&action)) {
      (void)links_.fabric->Broadcast(kToMemberMessage, agreement::Encode(all->message));
      // Not when ranks leave while this one does: then they have not all come to cairn_finalize.
      if (std::holds_alternative<agreement::Close>(all->message) && !lost_ && !closed_)
        OnClerk([](Keeper& keeper) {
          keeper.Journal("closed", {{"why", Keeper::Quote("every rank came to cairn_finalize")}});
        });
    } else if (const auto* begun = std::get_if<agreement::Begun>(&action)) {
      asked_ = now();
      OnClerk([reason = begun->reason, count = links_.progress().count](Keeper& keeper) {
        keeper.Journal("asked",
                       {{"trigger", Keeper::Quote(TriggerName(reason))}, {"count", std::to_string(count)}});
      });
    } else if (auto* prepare = std::get_if<agreement::Prepare>(&action)) {
      costs_.OnStaged(links_.progress().count, now());
      local_ = {prepare->id, prepare->count};
      NoteTiers();
      OnClerk([this, p = *prepare, wait = Nanoseconds(now() - asked_), now](Keeper& keeper) {
        keeper.Journal("staged",
                       {{"step", std::to_string(p.count)}, {"wait_ns", std::to_string(wait.count())}});
        auto attempt = keeper.Prepare(p.count);
        OnLoop([this, p, attempt = std::move(attempt), now] {
          Carry(leader_->OnPrepared(p.id, attempt, now()));
        });
      });
    } else if (auto* commit = std::get_if<agreement::Commit>(&action)) {
      OnClerk([this, c = std::move(*commit), asked = asked_, now](Keeper& keeper) {
        auto report = keeper.Commit(c, asked);
        OnLoop([this, id = c.id, report, now] {
          if (report.ok()) {
            last_save_ = *report;
            // A job that is being ended has better use for its time; the next life prunes, too.
            if (!closed_ && ending_.state() == ExitPolicy::State::kRunning)
              OnClerk([](Keeper& owner) { owner.Prune(); });
            costs_.OnSaved(links_.progress().count, now(), Nanoseconds(report->stall_ns));
          }
          const Nanoseconds held_back(report.ok() ? report->drain_ns - report->hurried_drain_ns : 0);
          Carry(leader_->OnCommitted(id, report.status(), now(), held_back));
        });
        if (report.ok()) keeper.JournalSaved(*report);
      });
    } else if (std::holds_alternative<agreement::Finish>(action)) {
      // A program that ends because the job is being ended (its own SIGTERM handler, say) has not come to its end. One that has says so in
      // its next life.
      const bool finished = ending_.state() == ExitPolicy::State::kRunning;
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
  // What was under way then has been finished.
  if (next_life_ && !can_save()) ending_.OnLost();
}

void Coordinator::OnPartnerHeld(const PartnerHeld& held) {
  if (held.save_id > held_id_) held_.clear();
  held_id_ = std::max(held_id_, held.save_id);
  if (held.save_id == held_id_) held_.insert(held.ward);
  NoteTiers();
}

// The partners' word may come before the last member's that it has staged.
void Coordinator::NoteTiers() {
  const bool all = held_id_ == local_.save_id && held_.size() == static_cast<size_t>(boot_.world_size);
  if (!all || partner_.save_id == held_id_) return;
  partner_ = local_;
  links_.log->Debug("the partners hold step ", partner_.step);
  OnClerk([step = partner_.step](Keeper& keeper) {
    keeper.Journal("partner", {{"step", std::to_string(step)}});
  });
}

void Coordinator::ScheduleTick() {
  const auto next = leader_->next_tick();
  if (!next) return tick_.Stop();
  const auto delay = duration_cast<milliseconds>(*next - std::chrono::steady_clock::now()) + milliseconds(1);
  tick_.Once(std::max(delay, milliseconds(0)));
}

void Coordinator::TellSaved(int64_t step) {
  host_.Tell(Saved{.dir = boot_.settings.dir, .session = session_, .step = step});
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
    TellSaved(save.step);
  } else if (!ended.status.ok()) {
    last_failure_ = ended.status.message();
    const auto state = leader_->state();
    const bool late = ended.reason == kTriggerInterval && (state == agreement::LeaderState::kFinishing ||
                                                           state == agreement::LeaderState::kClosed);
    // An interval that comes round at the very end is nothing to report.
    if (late) return links_.log->Debug("no save (interval): ", last_failure_);
    links_.log->Warn("no save (", TriggerName(ended.reason), "): ", last_failure_,
                     ended.reason == kTriggerEnd ? "" : ". The job goes on");
    // A request that was refused may leave the save of others under way.
    const bool begun = ended.id != 0;
    OnClerk([begun, reason = ended.reason, step = ended.count, why = last_failure_](Keeper& keeper) {
      if (begun) keeper.Abandon();
      keeper.Journal("dropped", {{"trigger", Keeper::Quote(TriggerName(reason))},
                                 {"step", std::to_string(step)},
                                 {"why", Keeper::Quote(why)}});
    });
  }
  desk_.OnSaveEnded(ended, last_save_ ? last_save_->name : "");
  interval_.Learn(costs_, leader_->write_time());
  ending_.OnSaveEnded(ended);
  ScheduleInterval();
}

// Where no save is under way the program's steps are as long as they are without Cairn.
void Coordinator::MeasureIdle() {
  const bool idle = leader_->state() == agreement::LeaderState::kIdle;
  if (std::exchange(idle_, idle) == idle) return;
  const auto now = std::chrono::steady_clock::now();
  idle ? costs_.OnIdle(links_.progress().count, now) : costs_.OnBegun(links_.progress().count, now);
}

void Coordinator::ScheduleInterval() {
  if (const auto wait = interval_.Wait(links_.progress())) interval_timer_.Once(*wait);
}

void Coordinator::OnInterval() {
  if (!interval_.Due(links_.progress())) return ScheduleInterval();
  links_.trigger(kTriggerInterval, agreement::kNoLimit, "");
}

void Coordinator::OnPeer(int rank, PeerState state, const std::string& why) {
  const bool ends = state == PeerState::kGone || state == PeerState::kLeft;
  const bool over = closed_ || ending_.state() == ExitPolicy::State::kLeft ||
                    (leader_ && leader_->state() == agreement::LeaderState::kClosed);
  if (ends && !over) {
    lost_ = true;
    links_.log->Warn(
        "rank ", rank, state == PeerState::kLeft ? " has left without cairn_finalize" : " is gone: " + why,
        "; this life makes no more saves",
        boot_.supervised
            ? ""
            : ". To resume, run the same command again with --checkpoint-dir=" + boot_.settings.dir);
    OnClerk([rank, why, count = links_.progress().count](Keeper& keeper) {
      keeper.Journal(
          "gone",
          {{"rank", std::to_string(rank)}, {"why", Keeper::Quote(why)}, {"count", std::to_string(count)}});
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
      next_life_ |= !over && boot_.supervised;
      return Carry(leader_->OnGone(member, why, now));
    case PeerState::kLeft:
      return Carry(leader_->OnGone(member, "left without cairn_finalize", now));
  }
}

// ---- the end of the job ----

Ending::Stand Coordinator::Stand() const {
  using Phase = Ending::Stand::Phase;
  using UnderWay = DeadlineFacts::UnderWay;
  Ending::Stand stand;
  const auto progress = links_.progress();
  stand.count = progress.count;
  stand.restored_step = restored_step_;
  stand.newest_step = last_save_ ? last_save_->step : restored_step_;
  stand.moved_on = stand.newest_step > restored_step_ || restored_before_ != restored_step_;
  stand.every = interval_.Every(progress);
  DeadlineFacts& facts = stand.facts;
  facts.times.step = progress.period;
  if (stand.newest_step > 0) facts.durable = stand.newest_step;
  if (last_save_) {
    facts.times.bytes = last_save_->bytes;
    facts.times.stall = Nanoseconds(last_save_->hurried_stall_ns);
  }
  if (!leader_) return stand;
  const auto state = leader_->state();
  stand.phase = can_save() && state != agreement::LeaderState::kFinishing ? Phase::kSaving
                : lost_                                                   ? Phase::kLost
                                                                          : Phase::kOver;
  facts.times.write_time = leader_->hurried_write_time();
  facts.boundary = leader_->boundary();
  if (const auto since = leader_->writing_since()) {
    facts.under_way = UnderWay::kWriting;
    facts.written = HurriedPart(std::chrono::steady_clock::now() - *since, leader_->write_time(),
                                leader_->hurried_write_time());
  } else if (state == agreement::LeaderState::kStaging) {
    facts.under_way = UnderWay::kBoundary;
  }
  return stand;
}

void Coordinator::OnSignal(int from, const SignalSeen& signal) {
  links_.log->Debug("signal ", signal.signo, signal.from_slurm ? " from Slurm" : " from elsewhere");
  const auto now = std::chrono::steady_clock::now();
  Seen& seen = seen_[signal.signo];
  if (now - seen.first < kSameSignal && seen.ranks.insert(from).second) return;
  seen = {now, {from}};
  if (signal.signo == SIGTERM) return ending_.OnSigterm();
  const std::string why = WhyNoSave();
  if (!why.empty()) return links_.log->Debug("signal ", signal.signo, " saves nothing: ", why);
  links_.trigger(kTriggerRequest, agreement::kNoLimit, "");
}

void Coordinator::OnInterrupt(std::function<void()> done) {
  on_interrupt_ = std::move(done);
  interrupt_timer_.Once(kInterruptBound);
  OnClerk([this, count = links_.progress().count](Keeper& keeper) {
    keeper.Journal("ending", {{"cause", Keeper::Quote("interrupted")},
                              {"why", Keeper::Quote("SIGINT, as Ctrl-C in srun sends it")},
                              {"count", std::to_string(count)}});
    OnLoop([this] { Interrupted(); });
  });
}

void Coordinator::Interrupted() {
  interrupt_timer_.Stop();
  if (const auto done = std::exchange(on_interrupt_, {})) done();
}

// ---- the `cairn` command ----

void Coordinator::OnHost(uint16_t type, const std::string& payload) {
  if (host_.OnHost(type, payload)) return;
  if (type == CopyState::kType) {
    if (auto state = DecodeHostMessage<CopyState>(payload); state.ok()) copies_ = *std::move(state);
    return;
  }
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

std::string Coordinator::WhyNoResize() const {
  if (!boot_.supervised) return "it was not started by `cairn run`, so nobody would start its next step";
  if (ending_.state() != ExitPolicy::State::kRunning) return "the job is being ended";
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
              {"supervised", boot_.supervised},
              {"min_nodes", boot_.min_nodes},
              {"why_no_resize", WhyNoResize().empty() ? WhyNoSave() : WhyNoResize()},
              {"restored_step", restored_step_},
              {"interval", interval_.Describe()},
              {"tiers",
               {{"local", local_.step},
                {"partner", partner_.step},
                {"durable", last_save_ ? last_save_->step : restored_step_}}},
              {"save", leader_ ? std::string(agreement::LeaderStateName(leader_->state())) : "not started"},
              {"ending", std::string(ExitStateName(ending_.state()))}};
  if (last_save_) {
    out["last_save"] = {{"checkpoint", last_save_->name},   {"step", last_save_->step},
                        {"label", last_save_->label},       {"trigger", last_save_->trigger},
                        {"bytes", last_save_->bytes},       {"stall_ns", last_save_->stall_ns},
                        {"drain_ns", last_save_->drain_ns}, {"durable_ns", last_save_->durable_ns}};
  }
  const DeadlineFacts facts = Stand().facts;
  if (facts.under_way != DeadlineFacts::UnderWay::kNothing) out["save_step"] = facts.boundary;
  if (!ending_.fit_line().empty()) out["fit"] = ending_.fit_line();
  const bool draining = leader_ && leader_->state() == agreement::LeaderState::kDraining;
  if (const auto drain = draining ? drain_.Read(leader_->id()) : std::nullopt) {
    out["drain"] = {{"bytes", drain->bytes},   {"written", drain->written},
                    {"ranks", drain->ranks},   {"bytes_per_second", std::llround(drain->bytes_per_second)},
                    {"seconds_left", nullptr}, {"writer", drain->writer},
                    {"limit", nullptr}};
    if (drain->left) out["drain"]["seconds_left"] = 1e-9 * static_cast<double>(drain->left->count());
    if (boot_.settings.drain_limit > 0) out["drain"]["limit"] = boot_.settings.drain_limit;
  }
  if (const std::string& to = boot_.settings.copy.to; !to.empty()) {
    out["copy"] = {
        {"to", to}, {"step", nullptr}, {"bytes", copies_.bytes}, {"under_way", nullptr}, {"lag", nullptr}};
    if (copies_.step) {
      out["copy"]["step"] = *copies_.step;
      out["copy"]["lag"] = (last_save_ ? last_save_->step : restored_step_) - *copies_.step;
    }
    if (copies_.under_way) out["copy"]["under_way"] = *copies_.under_way;
    if (!copies_.failure.empty()) out["copy"]["failure"] = copies_.failure;
  }
  if (!last_failure_.empty()) out["last_failure"] = last_failure_;
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

void Coordinator::Close(std::function<void()> done) {
  closed_ = true;
  for (Timer* timer : {&tick_, &interval_timer_, &progress_timer_}) timer->Stop();
  ending_.Stop();
  host_.Tell(Left{session_});
  OnClerk([this, count = links_.progress().count, done = std::move(done)](Keeper& keeper) {
    keeper.Journal("end", {{"count", std::to_string(count)}});
    keeper.Close();
    OnLoop(done);
  });
}

}  // namespace cairn
