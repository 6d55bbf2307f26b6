// One try at a save: from Poll to the commit (2 to 8 of the protocol in leader.h).
#include <algorithm>
#include <utility>

#include "runtime/agreement/leader.h"

namespace cairn::agreement {
namespace {

// The margin doubles with every failed try, so this many tries span any spread that a save can be agreed over at all.
constexpr int kMaxTries = 16;
constexpr int kMaxAborts = 3;  // each has held the program for its whole boundary wait
constexpr int64_t kMaxMargin = int64_t{1} << 24;
constexpr Nanoseconds kMaxRoundTrip = std::chrono::seconds(1);
constexpr Nanoseconds kMinPeriod = std::chrono::microseconds(1);

std::string RankName(Rank rank) { return "rank " + std::to_string(rank); }

}  // namespace

// ---- 2 to 5: settling on a boundary ----

void Leader::Try(TimePoint now) {
  all_staged_ = false;
  boundary_ = count_ = 0;
  if (suspects_ > 0) {
    state_ = LeaderState::kHeld;
    return;
  }
  ++id_;
  polled_at_ = now;
  EnterPhase(LeaderState::kPolling);
  out_.emplace_back(Broadcast{Poll{id_}});
}

void Leader::TryAgain(const std::string& why, TimePoint now) {
  out_.emplace_back(Broadcast{Drop{id_, false, why}});
  out_.emplace_back(Note{"save " + std::to_string(id_) + ": " + why + "; trying again"});
  Try(now);
}

void Leader::EnterPhase(LeaderState state) {
  state_ = state;
  missing_ = options_.members;
  for (Peer& peer : peers_) peer.answered = false;
}

// Marks the member's answer; true when it was the last one that was missing.
bool Leader::Answered(Rank from) {
  if (std::exchange(peers_[from].answered, true)) return false;
  return --missing_ == 0;
}

void Leader::TakeCount(Input& in) {
  peers_[in.from].count = std::get<Count>(in.message);
  if (!Answered(in.from)) return;
  const auto rest = RestCount();
  boundary_ = rest ? *rest : ChooseBoundary(in.now);
  EnterPhase(LeaderState::kArming);
  out_.emplace_back(Broadcast{ArmAt{id_, boundary_, std::max(deadline_ - in.now, Nanoseconds(0))}});
}

// The count at which all members stand still, if they do.
std::optional<int64_t> Leader::RestCount() const {
  std::optional<int64_t> quiet;
  int64_t final = 0;
  for (const Peer& peer : peers_) {
    switch (peer.count.mode) {
      case Mode::kRunning:
        return std::nullopt;
      case Mode::kQuiet:
        if (quiet && *quiet != peer.count.count) return std::nullopt;
        quiet = peer.count.count;
        break;
      case Mode::kFinal:
        final = std::max(final, peer.count.count);
        break;
    }
  }
  if (quiet && *quiet < final) return std::nullopt;
  return quiet.value_or(final);
}

int64_t Leader::ChooseBoundary(TimePoint now) const {
  int64_t largest = 0;
  Nanoseconds period = kNoLimit;
  for (const Peer& peer : peers_) {
    largest = std::max(largest, peer.count.count);
    if (peer.count.period > Nanoseconds(0)) period = std::min(period, peer.count.period);
  }
  period = std::max(period, kMinPeriod);
  const Nanoseconds round_trip = std::clamp(Nanoseconds(now - polled_at_), Nanoseconds(1), kMaxRoundTrip);
  const int64_t steps = (round_trip - Nanoseconds(1)) / period + 1;  // rounded up
  return largest + std::min((steps + 1) << failed_tries_, kMaxMargin);
}

void Leader::TakeNewCount(Input& in) {
  peers_[in.from].count = std::get<Count>(in.message);
  const auto rest = RestCount();
  if (AllFinal() || !rest || *rest >= boundary_) return;
  TryAgain(
      "all ranks stand still at count " + std::to_string(*rest) + ", short of " + std::to_string(boundary_),
      in.now);
}

void Leader::TakeAck(Input& in) {
  if (!Answered(in.from)) return;
  EnterPhase(LeaderState::kStaging);
  out_.emplace_back(Broadcast{Go{id_}});
}

void Leader::TakeNack(Input& in) {
  TryFurtherOff(RankName(in.from) + " was at count " + std::to_string(std::get<Nack>(in.message).count) +
                    " when it was to be armed for " + std::to_string(boundary_),
                in.now);
}

// The Go did not come in time, so the boundary was too near, as with a Nack; but this try has held the program up.
void Leader::TakeAbort(Input& in) {
  ++aborts_;
  TryFurtherOff(RankName(in.from) + " waited at boundary " + std::to_string(boundary_) +
                    " for the others and has gone on",
                in.now);
}

void Leader::TryFurtherOff(const std::string& why, TimePoint now) {
  if (++failed_tries_ < kMaxTries && aborts_ < kMaxAborts) return TryAgain(why, now);
  EndSave({Code::kTimeout, "no boundary could be agreed on in " + std::to_string(failed_tries_) + " tries: " +
                               why + "; the steps are too short for this network, or a rank is stuck"},
          now);
}

// ---- 6 to 8: snapshot, drain, commit ----

void Leader::TakeStaged(Input& in) {
  Peer& peer = peers_[in.from];
  peer.staged = std::get<Staged>(in.message);
  if (peer.staged.boundary != boundary_) {
    return EndSave({Code::kInternal, RankName(in.from) + " took its snapshot at " +
                                         std::to_string(peer.staged.boundary) + " instead of " +
                                         std::to_string(boundary_)},
                   in.now);
  }
  peer.count.mode =
      peer.staged.final ? Mode::kFinal : Mode::kRunning;  // it may leave a quiet stretch unheard
  if (!Answered(in.from)) return;

  // A final member's state is older than the boundary, and its label with it.
  std::optional<Rank> witness;
  for (Rank rank = 0; rank < peers_.size(); ++rank) {
    if (peers_[rank].staged.final) continue;
    if (!witness) witness = rank;
    if (peers_[rank].staged.label != peers_[*witness].staged.label) {
      return EndSave({Code::kInvalid,
                      "the step numbers given to cairn_step differ at boundary " + std::to_string(boundary_) +
                          ": " + RankName(*witness) + " says " +
                          std::to_string(peers_[*witness].staged.label) + ", " + RankName(rank) + " says " +
                          std::to_string(peers_[rank].staged.label) + "; all ranks must give the same"},
                     in.now);
    }
  }
  count_ = boundary_;
  if (!witness) {  // nobody has come to the boundary: the state is that of the last step that was made
    witness = 0;
    for (Rank rank = 0; rank < peers_.size(); ++rank) {
      if (peers_[rank].final_count > peers_[*witness].final_count) witness = rank;
    }
    count_ = peers_[*witness].final_count;
  }
  label_ = peers_[*witness].staged.label;
  all_staged_ = true;
  staged_at_ = in.now;
  state_ = LeaderState::kPreparing;
  out_.emplace_back(Prepare{id_, count_});
}

void Leader::TakePrepared(Input& in) {
  if (!in.status.ok()) return EndSave(in.status, in.now);
  EnterPhase(LeaderState::kDraining);
  out_.emplace_back(Broadcast{Drain{id_, std::move(in.text)}});
}

void Leader::TakeRecord(Input& in) {
  peers_[in.from].record = std::move(std::get<Record>(in.message).record);
  if (!Answered(in.from)) return;
  Commit commit{id_, count_, label_, current_.reason, current_.tags, {}};
  for (Peer& peer : peers_) commit.records.push_back(std::exchange(peer.record, {}));
  state_ = LeaderState::kCommitting;
  out_.emplace_back(std::move(commit));
}

void Leader::TakeCommitted(Input& in) { EndSave(in.status, in.now, in.held_back); }

}  // namespace cairn::agreement
