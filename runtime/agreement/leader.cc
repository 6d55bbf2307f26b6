#include "runtime/agreement/leader.h"

#include <algorithm>
#include <cassert>
#include <initializer_list>
#include <iterator>
#include <utility>

namespace cairn::agreement {
namespace {

int Urgency(Trigger reason) {
  switch (reason) {
    case kTriggerPreempt:
      return 4;
    case kTriggerTimeLimit:
      return 3;
    case kTriggerEnd:
      return 2;
    case kTriggerRequest:
      return 1;
    case kTriggerInterval:
    case kTriggerAll:
      break;
  }
  return 0;
}

// Whether a save for `current` serves `reason` too, although its boundary may lie before the request.
bool Serves(Trigger current, Trigger reason) {
  return reason == kTriggerInterval || (reason == current && reason != kTriggerRequest);
}

std::string RankName(Rank rank) { return "rank " + std::to_string(rank); }

using enum LeaderState;

constexpr uint32_t StateSet(std::initializer_list<LeaderState> states) {
  uint32_t set = 0;
  for (LeaderState state : states) set |= 1u << static_cast<int>(state);
  return set;
}

template <typename... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overload(Fs...) -> Overload<Fs...>;

}  // namespace

std::string_view LeaderStateName(LeaderState state) {
  static constexpr std::string_view kNames[] = {
#define X(enumerator, name, waits_for) name,
      CAIRN_LEADER_STATES(X)
#undef X
  };
  return kNames[static_cast<size_t>(state)];
}

enum class Leader::Event : int {
  kRequest,
  kCount,
  kAck,
  kNack,
  kAbort,
  kStaged,
  kRecord,
  kFailed,
  kFinalized,
  kSync,
  kSuspect,
  kRejoined,
  kGone,
  kPrepared,
  kCommitted,
  kFinished,
  kDeadline,
  kStale,  // a message or result of an id that is not the present one
};

struct Leader::Row {
  Event event;
  uint32_t states;  // bit n = LeaderState n
  Handler handler;
};

// The first row that fits is taken. Each event's last row says why it is ignored in the states that are left, if any are.
#define IN(...) StateSet({__VA_ARGS__})
#define ELSEWHERE ~0u
#define DO(handler) &Leader::handler
const Leader::Row Leader::kTransitions[] = {
    // clang-format off
    {Event::kRequest,   IN(kIdle),                                        DO(BeginSave)},
    {Event::kRequest,   IN(kHeld, kPolling, kArming),                     DO(JoinSave)},
    {Event::kRequest,   IN(kStaging, kPreparing, kDraining, kCommitting), DO(FollowSave)},
    {Event::kRequest,   IN(kFinishing, kClosed),                          DO(RefuseSave)},
    {Event::kCount,     IN(kPolling),                                     DO(TakeCount)},
    {Event::kCount,     IN(kArming, kStaging),                            DO(TakeNewCount)},
    {Event::kCount,     ELSEWHERE,                                        DO(Ignore)},  // of a try that is over
    {Event::kAck,       IN(kArming),                                      DO(TakeAck)},
    {Event::kAck,       ELSEWHERE,                                        DO(Ignore)},  // of a try that is over
    {Event::kNack,      IN(kArming),                                      DO(TakeNack)},
    {Event::kNack,      ELSEWHERE,                                        DO(Ignore)},  // of a try that is over
    {Event::kAbort,     IN(kArming, kStaging),                            DO(TakeAbort)},
    {Event::kAbort,     ELSEWHERE,                                        DO(Ignore)},  // of a try that is over
    {Event::kStaged,    IN(kStaging),                                     DO(TakeStaged)},
    {Event::kStaged,    ELSEWHERE,                                        DO(Ignore)},  // of a save that was dropped
    {Event::kRecord,    IN(kDraining),                                    DO(TakeRecord)},
    {Event::kRecord,    ELSEWHERE,                                        DO(Ignore)},  // of a save that was dropped
    {Event::kFailed,    IN(kStaging, kDraining),                          DO(TakeFailed)},
    {Event::kFailed,    ELSEWHERE,                                        DO(Ignore)},  // of a save that was dropped
    {Event::kFinalized, IN(kIdle),                                        DO(MarkFinalIdle)},
    {Event::kFinalized, IN(kArming, kStaging),                            DO(MarkFinalArmed)},
    {Event::kFinalized, IN(kFinishing, kClosed),                          DO(Ignore)},  // nothing is decided any more
    {Event::kFinalized, ELSEWHERE,                                        DO(MarkFinal)},
    {Event::kSync,      IN(kIdle),                                        DO(MarkSyncingIdle)},
    {Event::kSync,      IN(kClosed),                                      DO(Ignore)},  // Close has told it
    {Event::kSync,      ELSEWHERE,                                        DO(MarkSyncing)},
    {Event::kSuspect,   IN(kPolling, kArming, kStaging),                  DO(HoldForSuspect)},
    {Event::kSuspect,   IN(kClosed),                                      DO(Ignore)},  // nothing is decided any more
    {Event::kSuspect,   ELSEWHERE,                                        DO(MarkSuspect)},
    {Event::kRejoined,  IN(kHeld),                                        DO(ResumeHeld)},
    {Event::kRejoined,  IN(kClosed),                                      DO(Ignore)},  // nothing is decided any more
    {Event::kRejoined,  ELSEWHERE,                                        DO(MarkRejoined)},
    {Event::kGone,      IN(kCommitting, kFinishing),                      DO(MarkGone)},
    {Event::kGone,      IN(kClosed),                                      DO(Ignore)},  // members leave after Close
    {Event::kGone,      ELSEWHERE,                                        DO(EndForGone)},
    {Event::kPrepared,  IN(kPreparing),                                   DO(TakePrepared)},
    {Event::kPrepared,  ELSEWHERE,                                        DO(Ignore)},  // of a save that was dropped
    {Event::kCommitted, IN(kCommitting),                                  DO(TakeCommitted)},
    {Event::kCommitted, ELSEWHERE,                                        DO(Ignore)},  // of a save that was given up
    {Event::kFinished,  IN(kFinishing),                                   DO(TakeFinished)},
    {Event::kFinished,  ELSEWHERE,                                        DO(Ignore)},  // it was given up
    {Event::kDeadline,  IN(kFinishing),                                   DO(GiveUpFinishing)},
    {Event::kDeadline,  IN(kIdle, kClosed),                               DO(Ignore)},  // they have none
    {Event::kDeadline,  ELSEWHERE,                                        DO(GiveUp)},
    {Event::kStale,     ELSEWHERE,                                        DO(Ignore)},  // that try is over
    // clang-format on
};
#undef IN
#undef ELSEWHERE
#undef DO

Leader::Leader(const LeaderOptions& options)
    : options_(options), peers_(options.members), committed_count_(options.committed_count) {}

// ---- entrances ----

LeaderActions Leader::Run(Event event, Input& in) {
  const auto row = std::find_if(std::begin(kTransitions), std::end(kTransitions), [&](const Row& r) {
    return r.event == event && (r.states >> static_cast<int>(state_) & 1);
  });
  assert(row != std::end(kTransitions));
  (this->*row->handler)(in);
  return std::exchange(out_, {});
}

LeaderActions Leader::OnMessage(Rank from, ToLeader message, TimePoint now) {
  if (from >= peers_.size()) return {};
  const auto of_present = [this](const auto& m, Event event) { return m.id == id_ ? event : Event::kStale; };
  const Event event = std::visit(Overload{
                                     [](const Request&) { return Event::kRequest; },
                                     [](const Finalized&) { return Event::kFinalized; },
                                     [](const Sync&) { return Event::kSync; },
                                     [&](const Count& m) { return of_present(m, Event::kCount); },
                                     [&](const Ack& m) { return of_present(m, Event::kAck); },
                                     [&](const Nack& m) { return of_present(m, Event::kNack); },
                                     [&](const Abort& m) { return of_present(m, Event::kAbort); },
                                     [&](const Staged& m) { return of_present(m, Event::kStaged); },
                                     [&](const Record& m) { return of_present(m, Event::kRecord); },
                                     [&](const Failed& m) { return of_present(m, Event::kFailed); },
                                 },
                                 message);
  if (event == Event::kRequest) ++requests_;
  Input in{.now = now, .from = from, .message = std::move(message)};
  return Run(event, in);
}

LeaderActions Leader::OnSuspect(Rank member, TimePoint now) {
  Input in{.now = now, .from = member};
  return Run(Event::kSuspect, in);
}

LeaderActions Leader::OnRejoined(Rank member, TimePoint now) {
  Input in{.now = now, .from = member};
  return Run(Event::kRejoined, in);
}

LeaderActions Leader::OnGone(Rank member, std::string why, TimePoint now) {
  Input in{.now = now, .from = member, .text = std::move(why)};
  return Run(Event::kGone, in);
}

LeaderActions Leader::OnPrepared(SaveId id, Result<std::string> attempt, TimePoint now) {
  Input in{.now = now, .status = attempt.status()};
  if (attempt.ok()) in.text = *std::move(attempt);
  return Run(id == id_ ? Event::kPrepared : Event::kStale, in);
}

LeaderActions Leader::OnCommitted(SaveId id, Status status, TimePoint now, Nanoseconds held_back) {
  Input in{.now = now, .status = std::move(status), .held_back = held_back};
  return Run(id == id_ ? Event::kCommitted : Event::kStale, in);
}

LeaderActions Leader::OnFinished(Status status, TimePoint now) {
  Input in{.now = now, .status = std::move(status)};
  return Run(Event::kFinished, in);
}

LeaderActions Leader::OnTick(TimePoint now) {
  const auto tick = next_tick();
  if (!tick || now < *tick) return {};
  Input in{.now = now};
  return Run(Event::kDeadline, in);
}

std::optional<TimePoint> Leader::next_tick() const {
  if (state_ == kIdle || state_ == kClosed) return std::nullopt;
  if (own_deadline_ && hurried_write_time_ && BeforeStaged())
    return std::min(deadline_, *own_deadline_ - *hurried_write_time_ / 2);
  return deadline_;
}

std::optional<TimePoint> Leader::writing_since() const {
  if (state_ != kPreparing && state_ != kDraining && state_ != kCommitting) return std::nullopt;
  return staged_at_;
}

bool Leader::BeforeStaged() const {
  return state_ == kHeld || state_ == kPolling || state_ == kArming || state_ == kStaging;
}

// ---- 1: requests ----

void Leader::Want::Merge(const Want& other) {
  if (Urgency(other.reason) > Urgency(reason)) reason = other.reason;
  if (other.deadline && (!deadline || *other.deadline < *deadline)) deadline = other.deadline;
  all_bounded = all_bounded && other.all_bounded;
  tags.insert(tags.end(), other.tags.begin(), other.tags.end());
  from.insert(from.end(), other.from.begin(), other.from.end());
  requests.insert(requests.end(), other.requests.begin(), other.requests.end());
}

Leader::Want Leader::WantOf(const Input& in) const {
  const auto& request = std::get<Request>(in.message);
  Want want{.reason = request.reason, .from = {in.from}, .requests = {requests_}};
  // A limit beyond the save's own says nothing, and its sum with `now` might overflow.
  if (request.time_left < options_.save_timeout) want.deadline = in.now + request.time_left;
  want.all_bounded = want.deadline.has_value();
  if (!request.tag.empty()) want.tags.push_back(request.tag);
  return want;
}

void Leader::BeginSave(Input& in) {
  current_ = WantOf(in);
  StartSave(in.now);
}

void Leader::JoinSave(Input& in) {
  current_.Merge(WantOf(in));
  Bound(current_.deadline);
}

void Leader::Bound(const std::optional<TimePoint>& deadline) {
  if (!deadline) return;
  deadline_ = std::min(deadline_, *deadline);
  own_deadline_ = std::min(own_deadline_.value_or(*deadline), *deadline);
}

void Leader::FollowSave(Input& in) {
  const Want want = WantOf(in);
  if (Serves(current_.reason, want.reason) && want.tags.empty()) return JoinSave(in);
  if (!gone_.empty() && !want.any_state()) return RefuseSave(in);
  if (pending_) {
    pending_->Merge(want);
  } else {
    pending_ = want;
  }
  // What is under way is finished first, but not beyond the time of what follows. To drop it for a newer one would win no more than the
  // steps made since its boundary, and risk all those since the checkpoint before.
  Bound(want.deadline);
}

void Leader::RefuseSave(Input& in) {
  Settle(WantOf(in), 0, 0, {Code::kUnavailable, gone_.empty() ? "the run is at its end" : gone_});
}

void Leader::StartSave(TimePoint now) {
  deadline_ = now + options_.save_timeout;
  own_deadline_.reset();
  Bound(current_.deadline);
  failed_tries_ = aborts_ = 0;
  out_.emplace_back(Begun{current_.reason});
  Try(now);
}

// ---- 9, 10, 12: what goes wrong ----

void Leader::MarkSyncing(Input& in) { peers_[in.from].syncing = true; }

void Leader::MarkSyncingIdle(Input& in) {
  MarkSyncing(in);
  EndSync();
}

void Leader::EndSync() {
  if (!std::all_of(peers_.begin(), peers_.end(), [](const Peer& p) { return p.syncing || p.final; })) return;
  for (Peer& peer : peers_) peer.syncing = false;
  out_.emplace_back(Broadcast{Synced{}});
}

void Leader::TakeFailed(Input& in) {
  EndSave({Code::kIo, RankName(in.from) + ": " + std::get<Failed>(in.message).why}, in.now);
}

void Leader::MarkSuspect(Input& in) {
  Peer& peer = peers_[in.from];
  if (!peer.gone && !std::exchange(peer.suspect, true)) ++suspects_;
}

void Leader::HoldForSuspect(Input& in) {
  MarkSuspect(in);
  if (suspects_ == 0 || (state_ == kStaging && peers_[in.from].answered)) return;
  TryAgain(RankName(in.from) + " does not answer", in.now);
}

void Leader::MarkRejoined(Input& in) {
  if (std::exchange(peers_[in.from].suspect, false)) --suspects_;
}

void Leader::ResumeHeld(Input& in) {
  MarkRejoined(in);
  if (suspects_ == 0) Try(in.now);
}

void Leader::MarkGone(Input& in) {
  MarkRejoined(in);
  peers_[in.from].gone = true;
  if (gone_.empty()) gone_ = RankName(in.from) + " is gone (" + in.text + "): no more saves in this life";
}

void Leader::EndForGone(Input& in) {
  MarkGone(in);
  if (state_ == kIdle) return Next(in.now);
  if (state_ == kDraining && peers_[in.from].answered) return;  // its files are durable
  EndSave({Code::kUnavailable, gone_}, in.now);
}

// "ranks 2, 5, 6, 7 and 3 more"
std::string Leader::Missing() const {
  std::string text;
  uint32_t named = 0;
  for (Rank rank = 0; rank < peers_.size() && named < 4; ++rank) {
    const Peer& peer = peers_[rank];
    if (state_ == kHeld ? !peer.suspect : peer.answered) continue;
    text += (named++ ? ", " : "") + std::to_string(rank);
  }
  const uint32_t all = state_ == kHeld ? suspects_ : missing_;
  if (all > named) text += " and " + std::to_string(all - named) + " more";
  return (all == 1 ? "rank " : "ranks ") + text;
}

void Leader::GiveUp(Input& in) {
  static constexpr std::string_view kWaitsFor[] = {
#define X(enumerator, name, waits_for) waits_for,
      CAIRN_LEADER_STATES(X)
#undef X
  };
  std::string why = "time was up while waiting for " + std::string(kWaitsFor[static_cast<size_t>(state_)]);
  if (state_ != kPreparing && state_ != kCommitting) why += ": " + Missing();
  if (BeforeStaged() && in.now < deadline_) why += "; what is left would be too short to write it";
  EndSave({Code::kTimeout, why}, in.now);
}

void Leader::EndSave(const Status& status, TimePoint now, Nanoseconds held_back) {
  if (status.ok()) {
    committed_count_ = count_;
    write_time_ = now - staged_at_;
    hurried_write_time_ = *write_time_ - std::clamp(held_back, Nanoseconds(0), *write_time_);
    out_.emplace_back(Broadcast{Committed{id_}});
  } else if (state_ != kHeld) {  // the last try was dropped when it was held
    out_.emplace_back(Broadcast{Drop{id_, all_staged_, status.message()}});
  }
  last_failure_ = status.message();
  Settle(std::exchange(current_, {}), id_, status.ok() ? count_ : boundary_, status);
  if (status.ok() && pending_ && StandsInFor(*pending_, now))
    Settle(*std::exchange(pending_, {}), id_, count_, status, true);
  Next(now);
}

// Whether the save that has just been committed is all that fits into the time of what follows it.
bool Leader::StandsInFor(const Want& want, TimePoint now) const {
  if (!want.any_state()) return false;
  if (!gone_.empty()) return true;
  Nanoseconds period{};
  for (const Peer& peer : peers_) period = std::max(period, peer.count.period);
  return *want.deadline - now < 2 * period + *hurried_write_time_;
}

// Tells everybody who asked.
void Leader::Settle(const Want& want, SaveId id, int64_t count, const Status& status, bool stands_in) {
  out_.emplace_back(SaveEnded{id, want.reason, count, status, want.requests, stands_in});
  for (Rank rank : want.from) {
    if (!peers_[rank].gone) out_.emplace_back(SendTo{rank, Answer{status.ok(), status.message()}});
  }
}

// ---- 11: what follows, and the end ----

// No save is under way: begins what follows.
void Leader::Next(TimePoint now) {
  state_ = kIdle;
  if (AllFinal()) {
    int64_t last = 0;
    for (const Peer& peer : peers_) last = std::max(last, peer.final_count);
    if (committed_count_ && *committed_count_ >= last) {
      if (pending_) Settle(*std::exchange(pending_, {}), id_, *committed_count_, OkStatus());
      state_ = kFinishing;
      deadline_ = now + options_.save_timeout;
      out_.emplace_back(Finish{});
      return;
    }
    if (options_.save_at_end && !stateless_ && !end_tried_ && gone_.empty()) {
      end_tried_ = true;
      if (!pending_) pending_.emplace(Want{});
      pending_->Merge(Want{.reason = kTriggerEnd, .all_bounded = false});
    }
  }
  if (!gone_.empty()) {
    if (pending_) Settle(*std::exchange(pending_, {}), 0, 0, {Code::kUnavailable, gone_});
    return Close(false, gone_);
  }
  if (pending_) {
    current_ = *std::exchange(pending_, {});
    return StartSave(now);
  }
  if (AllFinal()) return Close(false, end_tried_ ? "the last save failed: " + last_failure_ : "");
  EndSync();
}

void Leader::MarkFinal(Input& in) {
  Peer& peer = peers_[in.from];
  if (std::exchange(peer.final, true)) return;
  ++finals_;
  const Finalized& finalized = std::get<Finalized>(in.message);
  peer.final_count = finalized.count;
  stateless_ |= finalized.stateless;
  peer.count.mode = Mode::kFinal;
  peer.count.count = peer.final_count;
}

void Leader::MarkFinalIdle(Input& in) {
  MarkFinal(in);
  if (AllFinal()) Next(in.now);
}

void Leader::MarkFinalArmed(Input& in) {
  MarkFinal(in);
  in.message = Count{id_, peers_[in.from].count.count, {}, Mode::kFinal};
  TakeNewCount(in);
}

void Leader::TakeFinished(Input& in) { Close(in.status.ok(), in.status.message()); }

void Leader::GiveUpFinishing(Input&) {
  Close(false, "the last state is durable, but the run could not be recorded as finished in time");
}

void Leader::Close(bool finished, const std::string& why) {
  state_ = kClosed;
  out_.emplace_back(Broadcast{agreement::Close{finished, why}});
}

}  // namespace cairn::agreement
