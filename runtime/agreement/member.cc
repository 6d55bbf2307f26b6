#include "runtime/agreement/member.h"

#include <algorithm>
#include <cassert>
#include <initializer_list>
#include <iterator>
#include <utility>

namespace cairn::agreement {
namespace {

using enum MemberState;

constexpr uint32_t StateSet(std::initializer_list<MemberState> states) {
  uint32_t set = 0;
  for (MemberState state : states) set |= 1u << static_cast<int>(state);
  return set;
}

template <typename... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overload(Fs...) -> Overload<Fs...>;

}  // namespace

std::string_view MemberStateName(MemberState state) {
  static constexpr std::string_view kNames[] = {
#define X(enumerator, name, meaning) name,
      CAIRN_MEMBER_STATES(X)
#undef X
  };
  return kNames[static_cast<size_t>(state)];
}

enum class Member::Event : int {
  kBoundary,
  kQuietBegin,
  kQuietEnd,
  kFinalized,
  kWaitExpired,
  kPoll,
  kArmAt,
  kArmed,
  kGo,
  kDrain,
  kCommitted,
  kDrop,
  kSnapshotted,
  kDrained,
  kStale,  // a message or result of an id that is not the present one
};

struct Member::Input {
  TimePoint now;
  ToMember message;
  Progress progress;
  Status status;
  std::string text;
  bool all_staged = false;
};

struct Member::Row {
  Event event;
  uint32_t states;  // bit n = MemberState n
  Handler handler;
};

// The first row that fits is taken. Each event's last row says why it is ignored in the states that are left.
#define IN(...) StateSet({__VA_ARGS__})
#define ELSEWHERE ~0u
#define DO(handler) &Member::handler
const Member::Row Member::kTransitions[] = {
    // clang-format off
    {Event::kBoundary,    IN(kArmed),               DO(ComeToWait)},
    {Event::kBoundary,    IN(kCleared),             DO(TakeSnapshotAtBoundary)},
    {Event::kBoundary,    ELSEWHERE,                DO(Ignore)},  // OnArmed had the lock first and refused; or dropped a moment ago
    {Event::kQuietBegin,  IN(kArmed, kCleared),     DO(TellMode)},
    {Event::kQuietBegin,  ELSEWHERE,                DO(Ignore)},  // the next Poll or ArmAt tells
    {Event::kQuietEnd,    IN(kArmed, kCleared),     DO(TellMode)},
    {Event::kQuietEnd,    IN(kWaiting, kSnapshotting, kDiscarding), DO(HoldApplication)},
    {Event::kQuietEnd,    ELSEWHERE,                DO(Ignore)},  // nothing depends on the state standing still
    {Event::kFinalized,   IN(kArmed),               DO(FinalizeArmed)},
    {Event::kFinalized,   IN(kCleared),             DO(FinalizeCleared)},
    {Event::kFinalized,   ELSEWHERE,                DO(Ignore)},  // the leader is told in every state
    {Event::kWaitExpired, IN(kWaiting),             DO(LeaveBoundary)},
    {Event::kWaitExpired, ELSEWHERE,                DO(Ignore)},  // Go or Drop came first
    {Event::kPoll,        IN(kIdle),                DO(TellCount)},
    {Event::kPoll,        IN(kDiscarding),          DO(TellCountLater)},
    {Event::kPoll,        ELSEWHERE,                DO(Ignore)},  // Committed or Drop of the save before comes first
    {Event::kArmAt,       IN(kIdle),                DO(StartArming)},
    {Event::kArmAt,       ELSEWHERE,                DO(Ignore)},  // as Poll
    {Event::kArmed,       IN(kArming),              DO(FinishArming)},
    {Event::kArmed,       ELSEWHERE,                DO(Ignore)},  // nothing asked for it
    {Event::kGo,          IN(kArmed),               DO(Clear)},
    {Event::kGo,          IN(kWaiting),             DO(TakeSnapshotAtGo)},
    {Event::kGo,          ELSEWHERE,                DO(Ignore)},  // a duplicate
    {Event::kDrain,       IN(kStaged),              DO(BeginDrain)},
    {Event::kDrain,       ELSEWHERE,                DO(Ignore)},  // a duplicate
    {Event::kCommitted,   IN(kRecorded),            DO(EndCommitted)},
    {Event::kCommitted,   ELSEWHERE,                DO(Ignore)},  // a duplicate
    {Event::kDrop,        IN(kArming, kArmed, kCleared), DO(ForgetArmed)},
    {Event::kDrop,        IN(kWaiting),             DO(ForgetWaiting)},
    {Event::kDrop,        IN(kSnapshotting),        DO(ForgetSnapshotting)},
    {Event::kDrop,        IN(kStaged),              DO(ForgetStaged)},
    {Event::kDrop,        IN(kDraining, kRecorded), DO(ForgetComplete)},
    {Event::kDrop,        ELSEWHERE,                DO(Ignore)},  // there is nothing to forget
    {Event::kSnapshotted, IN(kSnapshotting),        DO(FinishSnapshot)},
    {Event::kSnapshotted, IN(kDiscarding),          DO(FinishDiscarding)},
    {Event::kSnapshotted, ELSEWHERE,                DO(Ignore)},  // nothing asked for it
    {Event::kDrained,     IN(kDraining),            DO(FinishDrain)},
    {Event::kDrained,     ELSEWHERE,                DO(Ignore)},  // nothing asked for it
    {Event::kStale,       ELSEWHERE,                DO(Ignore)},  // that id was forgotten: a late Go ends here
    // clang-format on
};
#undef IN
#undef ELSEWHERE
#undef DO

// ---- entrances ----

void Member::Dispatch(Event event, Input& in) {
  const auto row = std::find_if(std::begin(kTransitions), std::end(kTransitions), [&](const Row& r) {
    return r.event == event && (r.states >> static_cast<int>(state_) & 1);
  });
  assert(row != std::end(kTransitions));
  (this->*row->handler)(in);
}

MemberActions Member::Run(Event event, Input& in) {
  Dispatch(event, in);
  return std::exchange(out_, {});
}

MemberActions Member::OnBoundary(int64_t count, int64_t label, TimePoint now) {
  Input in{.now = now};
  if (id_ == 0 || count != boundary_) return {};
  label_ = label;
  return Run(Event::kBoundary, in);
}

MemberActions Member::OnQuietBegin(int64_t count, int64_t label) {
  mode_ = Mode::kQuiet;
  rest_count_ = count;
  label_ = label;
  Input in;
  return Run(Event::kQuietBegin, in);
}

MemberActions Member::OnQuietEnd(TimePoint now) {
  mode_ = Mode::kRunning;
  Input in{.now = now};
  return Run(Event::kQuietEnd, in);
}

MemberActions Member::OnFinalized(int64_t count, int64_t label, bool stateless) {
  mode_ = Mode::kFinal;
  rest_count_ = count;
  label_ = label;
  held_ = true;
  if (!closed_) Emit(Finalized{count, stateless});
  Input in;
  return Run(Event::kFinalized, in);
}

MemberActions Member::OnWaitExpired(TimePoint now) {
  const auto until = wait_until();
  if (!until || now < *until) return {};
  Input in{.now = now};
  return Run(Event::kWaitExpired, in);
}

MemberActions Member::OnMessage(ToMember message, Progress progress, TimePoint now) {
  const auto of_present = [this](const auto& m, Event event) { return m.id == id_ ? event : Event::kStale; };
  const Event event = std::visit(
      Overload{
          [](const Poll&) { return Event::kPoll; },
          [](const ArmAt&) { return Event::kArmAt; },
          [&](const Go& m) { return of_present(m, Event::kGo); },
          [&](const Drain& m) { return of_present(m, Event::kDrain); },
          [&](const Committed& m) { return of_present(m, Event::kCommitted); },
          [&](const Drop& m) {
            if (late_count_ && late_count_->id == m.id) late_count_.reset();
            return of_present(m, Event::kDrop);
          },
          [&](const Answer& m) {
            if (requests_ > 0) {
              --requests_;
              out_.emplace_back(Answered{m.saved ? OkStatus() : Status(Code::kUnavailable, m.why)});
            }
            return Event::kStale;
          },
          [&](const Close& m) {
            CloseWith(m.finished || m.why.empty() ? OkStatus() : Status(Code::kUnavailable, m.why));
            return Event::kStale;
          },
          [&](const Synced&) {
            syncing_ = false;
            return Event::kStale;
          },
      },
      message);
  Input in{.now = now, .progress = progress};
  if (const auto* drop = std::get_if<Drop>(&message)) {
    in.text = drop->why;
    in.all_staged = drop->all_staged;
  }
  in.message = std::move(message);
  return Run(event, in);
}

MemberActions Member::OnLeaderGone(std::string why) {
  CloseWith({Code::kUnavailable, std::move(why)});
  return std::exchange(out_, {});
}

MemberActions Member::OnWait() {
  if (!closed_) {
    syncing_ = true;
    Emit(Sync{});
  }
  return std::exchange(out_, {});
}

MemberActions Member::OnTrigger(Trigger reason, Nanoseconds time_left, std::string tag) {
  if (closed_) {
    out_.emplace_back(Answered{closed_->ok() ? Status(Code::kUnavailable, "the run is finished") : *closed_});
  } else {
    ++requests_;
    Emit(Request{reason, time_left, std::move(tag)});
  }
  return std::exchange(out_, {});
}

MemberActions Member::OnArmed(int64_t count) {
  Input in{.progress = {.count = count}};
  return Run(Event::kArmed, in);
}

void Member::OnLeft(SaveId id) {
  if (id == id_ && mode_ == Mode::kRunning) held_ = false;
}

MemberActions Member::OnSnapshotted(SaveId id, Status status) {
  Input in{.status = std::move(status)};
  return Run(id == id_ ? Event::kSnapshotted : Event::kStale, in);
}

MemberActions Member::OnDrained(SaveId id, Result<std::string> record) {
  Input in{.status = record.status()};
  if (record.ok()) in.text = *std::move(record);
  return Run(id == id_ ? Event::kDrained : Event::kStale, in);
}

bool Member::holds_application() const {
  if (!held_) return false;
  if (mode_ == Mode::kFinal && !closed_) return true;
  return state_ == kWaiting || state_ == kSnapshotting || state_ == kDiscarding;
}

std::optional<TimePoint> Member::wait_until() const {
  // In cairn_finalize the application has nothing better to do: the leader's word ends that wait.
  if (state_ != kWaiting || !held_ || mode_ == Mode::kFinal) return std::nullopt;
  return std::min(held_since_ + options_.boundary_wait, deadline_);
}

bool Member::has_snapshot() const {
  switch (state_) {
    case kSnapshotting:
    case kDiscarding:
    case kStaged:
    case kDraining:
    case kRecorded:
      return true;
    default:
      return false;
  }
}

bool Member::at_rest() const { return !has_snapshot() && requests_ == 0 && !syncing_; }

// ---- handlers ----

// No save is under way here any more.
void Member::Rest() {
  state_ = closed_ ? kClosed : kIdle;
  id_ = 0;
  if (mode_ != Mode::kFinal) held_ = false;
}

void Member::End(Outcome outcome, const std::string& why) {
  out_.emplace_back(Ended{id_, outcome, why});
  Rest();
}

void Member::TellCount(Input& in) {
  const bool running = mode_ == Mode::kRunning;
  Emit(Count{std::get<Poll>(in.message).id, running ? in.progress.count : rest_count_, in.progress.period,
             mode_});
  told_mode_ = mode_;
}

// The application stands still until the dropped snapshot is out of the way, so the count will be right then.
void Member::TellCountLater(Input& in) {
  late_count_ = Count{std::get<Poll>(in.message).id, in.progress.count, in.progress.period, Mode::kRunning};
  told_mode_ = Mode::kRunning;
}

void Member::StartArming(Input& in) {
  const auto& m = std::get<ArmAt>(in.message);
  id_ = m.id;
  boundary_ = m.boundary;
  // The leader's limit is at most some hours; anything larger must not overflow.
  deadline_ = in.now + std::min<Nanoseconds>(m.time_left, std::chrono::hours(24 * 365));
  state_ = kArming;
  out_.emplace_back(Arm{boundary_});
}

void Member::FinishArming(Input& in) {
  const int64_t count = mode_ == Mode::kRunning ? in.progress.count : rest_count_;
  if (count > boundary_ || (count == boundary_ && mode_ == Mode::kRunning)) {
    Emit(Nack{id_, count});
    out_.emplace_back(Disarm{});
    return Rest();
  }
  Emit(Ack{id_});
  if (count == boundary_ || mode_ == Mode::kFinal) {
    out_.emplace_back(Disarm{});
    state_ = kWaiting;
  } else {
    state_ = kArmed;
    if (mode_ != told_mode_) TellMode(in);  // it came to rest after the Poll
  }
}

void Member::Clear(Input&) { state_ = kCleared; }

void Member::HoldApplication(Input& in) {
  held_ = true;
  held_since_ = in.now;
}

void Member::ComeToWait(Input& in) {
  HoldApplication(in);
  out_.emplace_back(Disarm{});
  state_ = kWaiting;
}

void Member::Snapshot() {
  state_ = kSnapshotting;
  out_.emplace_back(TakeSnapshot{id_, boundary_, mode_});
}

void Member::TakeSnapshotAtBoundary(Input& in) {
  HoldApplication(in);
  out_.emplace_back(Disarm{});
  Snapshot();
}

void Member::TakeSnapshotAtGo(Input&) { Snapshot(); }

void Member::TellMode(Input&) {
  Emit(Count{id_, rest_count_, {}, mode_});
  told_mode_ = mode_;
}

void Member::FinalizeArmed(Input&) {
  out_.emplace_back(Disarm{});
  state_ = kWaiting;
}

void Member::FinalizeCleared(Input&) {
  out_.emplace_back(Disarm{});
  Snapshot();
}

void Member::LeaveBoundary(Input&) {
  const SaveId id = id_;
  Rest();  // first forget, then tell: a Go that comes from here on meets no such id
  Emit(Abort{id});
}

void Member::FinishSnapshot(Input& in) {
  if (!in.status.ok()) {
    Emit(Failed{id_, in.status.message()});
    return End(Outcome::kDropped, in.status.message());
  }
  Emit(Staged{id_, boundary_, label_, mode_ == Mode::kFinal});
  state_ = kStaged;
  if (mode_ != Mode::kFinal) held_ = false;
}

void Member::FinishDiscarding(Input&) {
  End(Outcome::kDropped, "the save was dropped while the snapshot was taken");
  if (!late_count_) return;
  late_count_->mode = mode_;
  if (mode_ != Mode::kRunning) late_count_->count = rest_count_;
  Emit(*std::exchange(late_count_, {}));
}

void Member::BeginDrain(Input& in) {
  state_ = kDraining;
  out_.emplace_back(StartDrain{id_, std::move(std::get<Drain>(in.message).attempt)});
}

void Member::FinishDrain(Input& in) {
  if (!in.status.ok()) {
    Emit(Failed{id_, in.status.message()});
    return End(Outcome::kLocal, in.status.message());
  }
  Emit(Record{id_, std::move(in.text)});
  state_ = kRecorded;
}

void Member::EndCommitted(Input&) { End(Outcome::kCommitted, {}); }

void Member::ForgetArmed(Input&) {
  out_.emplace_back(Disarm{});
  Rest();
}

void Member::ForgetWaiting(Input&) { Rest(); }

void Member::ForgetSnapshotting(Input&) { state_ = kDiscarding; }

void Member::ForgetStaged(Input& in) { End(in.all_staged ? Outcome::kLocal : Outcome::kDropped, in.text); }

void Member::ForgetComplete(Input& in) { End(Outcome::kLocal, in.text); }

// Whether others had staged is not known here, so a complete image is kept.
void Member::CloseWith(const Status& status) {
  if (closed_) return;
  closed_ = status;
  syncing_ = false;
  late_count_.reset();
  Input drop{.text = status.message(), .all_staged = true};
  Dispatch(Event::kDrop, drop);
  if (state_ == kIdle) state_ = kClosed;
  out_.emplace_back(Closed{status});
  for (; requests_ > 0; --requests_)
    out_.emplace_back(Answered{status.ok() ? Status(Code::kUnavailable, "the run is finished") : status});
}

}  // namespace cairn::agreement
