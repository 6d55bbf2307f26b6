#include "runtime/session/ending.h"

#include <algorithm>
#include <utility>

namespace cairn {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// A signal of unknown origin (somebody's kill): as long as Slurm's own default between SIGTERM and SIGKILL would be safe.
constexpr Nanoseconds kUnknownCauseBound = seconds(20);
// What must be left of the time before the deadline when a final save is durable: requeue and goodbye.
constexpr Nanoseconds kGoodbye = seconds(2);
// Between two questions to a silent Slurm, each of which has a bound of its own.
constexpr milliseconds kAskPause = seconds(1);
constexpr Nanoseconds kFirstRetryPause = seconds(1);
constexpr Nanoseconds kMaxRetryPause = seconds(8);

std::string Step(int64_t step) { return "step " + std::to_string(step); }

}  // namespace

Ending::Ending(const Bootstrap& boot, Links links)
    : boot_(boot),
      links_(std::move(links)),
      policy_(boot.settings, static_cast<int>(boot.identity.restart) + 1 < boot.settings.max_lives),
      watch_(links_.loop, [this] { OnWatch(); }),
      ask_(links_.loop, [this] { AskAgain(); }),
      retry_(links_.loop, [this] { SaveNow(); }) {}

void Ending::Start() {
  if (boot_.settings.on & (kTriggerTimeLimit | kTriggerPreempt))
    AskSlurm([this](const CauseReply& reply) { LearnDeadline(reply); });
}

void Ending::Stop() {
  stopped_ = true;
  for (Timer* timer : {&watch_, &ask_, &retry_}) timer->Stop();
}

// ---- before the end: when it comes, and what fits ----

milliseconds Ending::Notice() const {
  if (boot_.settings.notice) return duration_cast<milliseconds>(*boot_.settings.notice);
  const SaveTimes times = links_.stand().facts.times;
  return seconds(20) +
         3 * duration_cast<milliseconds>(times.stall + times.write_time.value_or(Nanoseconds(0)));
}

void Ending::AskSlurm(std::function<void(const CauseReply& reply)> done) {
  links_.host->AskCause(Notice(), [this, done = std::move(done)](std::optional<CauseReply> reply) {
    CauseReply silence;
    silence.why = "Slurm could not be asked";
    silence.answered = false;
    const CauseReply& said = reply ? *reply : silence;
    if (said.warning_seconds) warning_ = seconds(*said.warning_seconds);
    done(said);
  });
}

void Ending::LearnDeadline(const CauseReply& reply) {
  const auto now = Clock::now();
  SayFit();
  if (!(boot_.settings.on & kTriggerTimeLimit)) return;
  if (reply.answered) {
    deadline_.OnAnswer(reply.seconds_left, now);
  } else if (deadline_.OnSilence(now)) {
    links_.log->Info("when the time limit ends is not known: ", reply.why, ". Slurm will be asked again");
  }
  ScheduleWatch();
}

void Ending::ScheduleWatch() {
  const auto at = deadline_.next(Notice());
  if (!at || stopped_) return watch_.Stop();
  watch_.Once(std::max(duration_cast<milliseconds>(*at - Clock::now()), milliseconds(0)));
}

void Ending::OnWatch() {
  if (stopped_ || policy_.state() != ExitPolicy::State::kRunning) return;
  if (deadline_.known()) return Act(policy_.OnDeadlineWatch());
  AskSlurm([this](const CauseReply& reply) { LearnDeadline(reply); });
}

void Ending::SayFit() {
  if (!warning_ || !(boot_.settings.on & kTriggerPreempt) || policy_.state() != ExitPolicy::State::kRunning)
    return;
  const Stand stand = links_.stand();
  Fit fit = FitOf(std::max(*warning_ - kGoodbye, Nanoseconds(0)), stand.facts.times, stand.every);
  const bool news = fit_.line.empty() || fit.kind != fit_.kind;
  fit_ = std::move(fit);
  if (news) links_.log->Info(fit_.line);
}

// ---- another life, by `cairn run` ----

void Ending::OnResize(const std::string& nodes) {
  const auto action = policy_.OnLifeOver();
  if (action == ExitPolicy::Action::kNothing) return;
  links_.log->Info("resize to ", nodes, ": this life ends, and `cairn run` starts the next one");
  links_.journal("ending", {{"cause", Keeper::Quote("resize")},
                            {"why", Keeper::Quote("to " + nodes)},
                            {"count", std::to_string(links_.stand().count)},
                            {"nodes", Keeper::Quote(nodes)}});
  // `cairn run` reads it as soon as the ranks are gone.
  links_.after_journal([this, action] {
    if (!stopped_) Act(action);
  });
}

void Ending::OnLost() { Act(policy_.OnLifeOver()); }

// ---- the cause ----

void Ending::OnSigterm() { Act(policy_.OnSignal()); }

void Ending::AskCause() {
  AskSlurm([this](const CauseReply& reply) { OnCause(reply); });
}

void Ending::OnCause(const CauseReply& reply) {
  const auto now = Clock::now();
  const auto before = policy_.state();
  const bool asked_again = policy_.wants_answer();
  const auto action = policy_.OnCause(
      {reply.cause, reply.seconds_left, reply.may_requeue, reply.why, reply.answered}, reply.batch);
  if (before == ExitPolicy::State::kAsking && policy_.state() == ExitPolicy::State::kRunning)
    return LearnDeadline(reply);
  if (before == ExitPolicy::State::kAsking || (asked_again && reply.answered)) {
    Nanoseconds left = kUnknownCauseBound;
    if (reply.seconds_left) {
      const Nanoseconds told = std::max<Nanoseconds>(seconds(*reply.seconds_left) - kGoodbye, seconds(1));
      left = reply.cause == Cause::kUnknown ? std::min(left, told) : told;
    }
    final_by_ = now + left;
    if (!reply.answered)
      grace_over_at_ = now + std::max(kUnknownCauseBound, warning_.value_or(Nanoseconds(0)));
  }
  if (action != ExitPolicy::Action::kNothing || (asked_again && reply.answered))
    SaySettled(reply, asked_again, action);
  if (policy_.wants_answer()) ask_.Once(kAskPause);
  Act(action);
}

void Ending::AskAgain() {
  if (stopped_ || !policy_.wants_answer()) return;
  if (Clock::now() >= grace_over_at_ && policy_.state() == ExitPolicy::State::kAskingAgain) {
    links_.log->Info("Slurm has not answered: whether the job may be requeued is not known");
    return Act(policy_.OnGraceOver());
  }
  AskCause();
}

void Ending::SaySettled(const CauseReply& reply, bool asked_again, ExitPolicy::Action action) {
  const Stand stand = links_.stand();
  const std::string left = reply.seconds_left ? "; " + std::to_string(*reply.seconds_left) + " s left" : "";
  const std::string what =
      reply.cause == Cause::kUnknown
          ? "SIGTERM of unknown cause" + (reply.why.empty() ? "" : " (" + reply.why + ")")
          : std::string(CauseName(reply.cause));
  const bool saving = action == ExitPolicy::Action::kFinalSave && stand.phase == Stand::Phase::kSaving;
  links_.log->Info(what, left, saving ? ": saving" : asked_again ? "" : ": no save");
  links_.journal("ending", {{"cause", Keeper::Quote(CauseName(reply.cause))},
                            {"why", Keeper::Quote(reply.why)},
                            {"count", std::to_string(stand.count)}});
}

// ---- the final save ----

void Ending::SaveNow() {
  if (stopped_ || policy_.state() != ExitPolicy::State::kSaving) return;
  const Stand stand = links_.stand();
  if (stand.phase != Stand::Phase::kSaving) return Act(policy_.OnFinalSave(Unsaved(stand)));
  DeadlineFacts facts = stand.facts;
  facts.left = std::max<Nanoseconds>(final_by_ - Clock::now(), Nanoseconds(0));
  const DeadlinePlan plan = PlanDeadline(facts);
  links_.log->Info(plan.line);
  links_.journal("deadline", {{"plan", Keeper::Quote(plan.line)}});
  links_.save(policy_.verdict().cause == Cause::kTimeLimit ? kTriggerTimeLimit : kTriggerPreempt, facts.left);
}

// How things stand without the final save.
ExitPolicy::FinalSave Ending::Unsaved(const Stand& stand) const {
  using Newest = ExitPolicy::FinalSave::Newest;
  ExitPolicy::FinalSave save{.moved_on = stand.moved_on};
  switch (stand.phase) {
    case Stand::Phase::kBefore:
      // There is nothing to save yet: another life begins where this one would have.
      save.newest = Newest::kRestored;
      save.moved_on = true;
      break;
    case Stand::Phase::kSaving:
    case Stand::Phase::kLost:
      if (stand.newest_step > stand.restored_step) {
        save.newest = Newest::kOwn;
      } else if (stand.restored_step > 0) {
        save.newest = Newest::kRestored;
      }
      break;
    case Stand::Phase::kOver:
      break;
  }
  return save;
}

Nanoseconds Ending::Pause() const {
  return std::min(kFirstRetryPause * (1 << std::min(tries_, 3)), kMaxRetryPause);
}

void Ending::OnSaveEnded(const agreement::SaveEnded& ended) {
  SayFit();
  ScheduleWatch();  // the notice follows what a save takes
  const bool ok = ended.status.ok();
  if (ended.reason != kTriggerPreempt && ended.reason != kTriggerTimeLimit) {
    if (ok) Act(policy_.OnLaterSave());
    return;
  }
  const Stand stand = links_.stand();
  ExitPolicy::FinalSave save = Unsaved(stand);
  save.durable = ok;
  // Below half of what writing took, the leader would not even wait for the boundary.
  const Nanoseconds least =
      std::max<Nanoseconds>(stand.facts.times.write_time.value_or(Nanoseconds(0)) / 2, milliseconds(500));
  save.time_left = stand.phase == Stand::Phase::kSaving && Clock::now() + Pause() + least < final_by_;
  Act(policy_.OnFinalSave(save));
  if (policy_.state() == ExitPolicy::State::kAskingAgain)
    links_.log->Info(
        "Slurm has not said yet whether this is a preemption; it is asked until the grace time ends");
}

// ---- what follows ----

void Ending::Act(ExitPolicy::Action action) {
  using Action = ExitPolicy::Action;
  switch (action) {
    case Action::kNothing:
      return;
    case Action::kAskCause:
      return AskCause();
    case Action::kFinalSave:
      return SaveNow();
    case Action::kTryAgain:
      retry_.Once(duration_cast<milliseconds>(Pause()));
      ++tries_;
      return;
    case Action::kRequeue:
      return Requeue();
    case Action::kAwaitKill:
      if (!policy_.requeued() && policy_.verdict().cause != Cause::kRequeued) {
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

void Ending::Requeue() {
  const Stand stand = links_.stand();
  if (policy_.falls_back() && stand.phase != Stand::Phase::kBefore)
    links_.log->Info("the last state is not saved; the next life goes on from ", Step(stand.newest_step),
                     ", the newest that is durable (this one has come to ", Step(stand.count), ")");
  links_.host->AskRequeue([this](std::optional<RequeueReply> reply) {
    const bool requeued = reply && reply->requeued;
    const std::string text = reply ? reply->text : "the host process did not answer the requeue";
    links_.log->Info(text);
    links_.journal(requeued ? "requeued" : "not_requeued", {{"text", Keeper::Quote(text)}});
    Act(policy_.OnRequeued(requeued));
  });
}

void Ending::Leave(LeaveOrder::Kind kind) {
  if (kind != LeaveOrder::kStay) {
    const Stand stand = links_.stand();
    links_.log->Info("leaving at ", Step(stand.count),
                     stand.newest_step > 0 ? "; the newest checkpoint holds " + Step(stand.newest_step)
                     : stand.phase == Stand::Phase::kBefore ? ", before the restore"
                                                            : "; there is no checkpoint");
    links_.journal("leaving", {{"step", std::to_string(stand.count)}});
  }
  links_.leave(kind);
}

}  // namespace cairn
