// Leader: the side of the agreement that decides, one per life, in the process of rank 0. Pure: (state, event, now) → state, actions.
//
// How a save comes about. M = member (runtime/agreement/member.h), L = leader; c = a member's count of cairn_step calls, T = the boundary.
//
//  1. A Request (reason, time left, tag) reaches L. While no boundary is settled it joins the save under way: the more urgent reason and
//     the earlier deadline win. Later it follows: requests that follow are merged into one. Urgency: preempt > timelimit > end > request >
//     interval. An interval, or the same preempt, timelimit or end once more, is served by the save under way in any state. So are requests
//     that follow when the save under way is durable and less of their time is left than two steps and what it took to write: a newer one
//     would not fit; nor can there be one when a member is gone (10).
//     L takes the next id and sends Poll(id).
//  2. M answers Count(id, c, period, mode).
//  3. All in: if everyone stands still (quiet at one c that no final member is past, or all final), T = the largest c and the snapshot is
//     taken there at once. Otherwise T = the largest c + margin; margin = ceil(round trip / shortest step) + 1, doubled by every failed
//     try. L sends ArmAt(id, T).
//  4. M stores T where cairn_step compares, *then* looks at its count: at or past T while running → Nack, otherwise Ack. Either M sees the
//     count that has passed T or cairn_step sees T (member.h argues it).
//  5. All Acks: Go(id). A Nack: Drop(id), and again from 2 under a new id, until the tries or the time are used up. When all members
//     have come to rest short of T, also Drop and again from 2 (T might be far off, as when validation began just now).
//  6. M at T without Go waits there, bounded. If the bound passes it forgets the id, *then* sends Abort(id): a late Go meets no such id.
//     L treats Abort like a Nack, a few times: T was too near. With Go M takes the snapshot and sends Staged(id, T, label).
//  7. All staged with equal labels (a final member's is exempt): the session makes the attempt's directory; L sends Drain(id, attempt); M
//     writes its files in the background and sends Record(id) when they are durable.
//  8. All records in: the session commits; L sends Committed(id).
//  9. Failed, unequal labels, a deadline, or a member gone before its record: Drop(id) to all. A member that falls silent (suspect)
//     before it staged: Drop(id), and the request is held until the member answers again or its time is up.
// 10. A member that is gone ends saving for this life: whatever its loss does not hinder is finished, and serves requests whose time is short
//     (1); others are refused.
// 11. cairn_finalize: M sends Finalized(c) and stays; its memory stands for every later T. When all are final L saves once more if the
//     count has moved since the last commit and no M has said that its state is gone, has the run recorded as finished, and sends Close.
// 12. cairn_wait: M stands still, as in quiet, and sends Sync. When all have and L is idle, L sends Synced.
// 13. Every state but idle and closed has a deadline; OnTick drives it. A request whose own time is short is given up before all have
//     staged, once less is left than half of what the last save took from there: the rest of that time is for what follows without it.
//
// Why no two members snapshot different T under one id: T is sent once per id. Why no commit lacks a snapshot: L counts Staged and then
// Record of every member under this id, and a member that has left T has forgotten the id, so it can send neither. docs/design/agreement.md
// has the whole argument, docs/design/model/agreement.pml checks it.
//
// Threads: the loop thread alone. Ownership: nothing outside. Errors: none; what arrives out of place is ignored as the table in leader.cc
// says.
//
// What the session does: feeds every event, carries out the returned actions in order, and calls OnTick at next_tick().
#ifndef CAIRN_RUNTIME_AGREEMENT_LEADER_H_
#define CAIRN_RUNTIME_AGREEMENT_LEADER_H_

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/agreement/messages.h"

namespace cairn::agreement {

// X(enumerator, name in logs, what L waits for there)
#define CAIRN_LEADER_STATES(X)                                     \
  X(kIdle, "idle", "nothing: no save is wanted")                   \
  X(kHeld, "held", "a silent member to answer again")              \
  X(kPolling, "polling", "the members' counts")                    \
  X(kArming, "arming", "the members to be armed")                  \
  X(kStaging, "staging", "the snapshots at the boundary")          \
  X(kPreparing, "preparing", "the attempt's directory")            \
  X(kDraining, "draining", "the members' files to be durable")     \
  X(kCommitting, "committing", "the manifest to be in place")      \
  X(kFinishing, "finishing", "the run to be recorded as finished") \
  X(kClosed, "closed", "nothing: there are no more saves in this life")

enum class LeaderState {
#define X(enumerator, name, waits_for) enumerator,
  CAIRN_LEADER_STATES(X)
#undef X
};
std::string_view LeaderStateName(LeaderState state);

// ---- what the session must do ----

struct SendTo {  // send to this member (it may be the leader's own process: deliver it like any other)
  Rank to = 0;
  ToMember message;
};
struct Broadcast {  // send to every member that is not gone
  ToMember message;
};
struct Begun {  // a save that is wanted is under way now: ends in SaveEnded
  Trigger reason = kTriggerRequest;
};
struct Prepare {  // off the loop: make the attempt's directory; then OnPrepared
  SaveId id = 0;
  int64_t count = 0;  // of cairn_step calls that the checkpoint will hold: it names the directory
};
struct Commit {  // off the loop: write the manifest and rename it into place; then OnCommitted
  SaveId id = 0;
  int64_t count = 0;
  int64_t label = 0;
  Trigger reason = kTriggerRequest;  // the most urgent one of those that it serves
  std::vector<std::string> tags;
  std::vector<std::string> records;  // by rank
};
struct Finish {};  // off the loop: record the run as finished; then OnFinished
// A request's save is over, for log, journal and exit policy; status says whether it is durable.
struct SaveEnded {
  SaveId id = 0;  // its last try; 0 = it was never begun
  Trigger reason = kTriggerRequest;
  int64_t count = 0;  // 0 when no boundary was settled
  Status status;
  std::vector<uint64_t> requests;  // those that it answers, by Leader::requests()
  // No save of its own: the one that was under way when it came, now durable, is all that fits.
  bool stands_in = false;
};
struct Note {  // a line for the log at debug level: why a try was given up
  std::string text;
};
using LeaderAction = std::variant<SendTo, Broadcast, Begun, Prepare, Commit, Finish, SaveEnded, Note>;
using LeaderActions = std::vector<LeaderAction>;

struct LeaderOptions {
  uint32_t members = 1;
  Nanoseconds save_timeout = std::chrono::minutes(10);  // from the begin of a save until it must be durable
  bool save_at_end = true;                              // whether cairn_finalize saves
  std::optional<int64_t> committed_count;               // of the checkpoint that was restored
};

class Leader {
 public:
  explicit Leader(const LeaderOptions& options);

  LeaderActions OnMessage(Rank from, ToLeader message, TimePoint now);

  // What is known of a member. Suspect: its heartbeat is late. Rejoined: it is back. Gone: its process is known to have ended, its
  // connection is broken, or it left without cairn_finalize; `why` is for people. Each may be told more than once.
  LeaderActions OnSuspect(Rank member, TimePoint now);
  LeaderActions OnRejoined(Rank member, TimePoint now);
  LeaderActions OnGone(Rank member, std::string why, TimePoint now);

  // Results of Prepare (the attempt's name), Commit and Finish.
  LeaderActions OnPrepared(SaveId id, Result<std::string> attempt, TimePoint now);
  // `held_back`: how much sooner a save in a hurry would have been durable (CAIRN_DRAIN_LIMIT).
  LeaderActions OnCommitted(SaveId id, Status status, TimePoint now, Nanoseconds held_back = {});
  LeaderActions OnFinished(Status status, TimePoint now);

  LeaderActions OnTick(TimePoint now);         // may come early or often
  std::optional<TimePoint> next_tick() const;  // nothing while idle or closed

  LeaderState state() const { return state_; }
  SaveId id() const { return id_; }                // of the latest try
  uint64_t requests() const { return requests_; }  // that came so far: the number of the latest one
  int64_t boundary() const { return boundary_; }   // of the save under way; 0 = none is settled

  // From all having staged to the commit: how long the last save took; how long it would have taken in a hurry, as saves before a deadline are; and
  // since when the one under way has been there.
  std::optional<Nanoseconds> write_time() const { return write_time_; }
  std::optional<Nanoseconds> hurried_write_time() const { return hurried_write_time_; }
  std::optional<TimePoint> writing_since() const;

 private:
  enum class Event : int;
  struct Input {
    TimePoint now;
    Rank from = 0;
    ToLeader message;
    Status status;
    std::string text;
    Nanoseconds held_back{};
  };
  struct Row;
  using Handler = void (Leader::*)(Input&);
  static const Row kTransitions[];

  // What is known of a member.
  struct Peer {
    bool suspect = false;
    bool gone = false;
    bool final = false;
    bool syncing = false;   // stands in cairn_wait
    bool answered = false;  // what the present state waits for has come
    Count count;            // latest of the present try
    Staged staged;          // of the present try
    int64_t final_count = 0;
    std::string record;
  };
  // One save that is wanted: requests merged.
  struct Want {
    Trigger reason = kTriggerInterval;
    std::optional<TimePoint> deadline;
    bool all_bounded = true;  // each of them has a deadline
    std::vector<std::string> tags;
    std::vector<Rank> from;          // gets an Answer each; a member may stand here more than once
    std::vector<uint64_t> requests;  // their numbers
    void Merge(const Want& other);
    // The newest state that can be durable in time is wanted, and not that of a moment: an older save may stand in.
    bool any_state() const { return deadline && all_bounded && tags.empty(); }
  };

  // The handlers of the table in leader.cc.
  void Ignore(Input&) {}
  void BeginSave(Input& in);
  void JoinSave(Input& in);
  void FollowSave(Input& in);
  void RefuseSave(Input& in);
  void TakeCount(Input& in);
  void TakeNewCount(Input& in);
  void TakeAck(Input& in);
  void TakeNack(Input& in);
  void TakeAbort(Input& in);
  void TakeStaged(Input& in);
  void TakeRecord(Input& in);
  void TakeFailed(Input& in);
  void MarkFinal(Input& in);
  void MarkFinalIdle(Input& in);
  void MarkFinalArmed(Input& in);
  void MarkSyncing(Input& in);
  void MarkSyncingIdle(Input& in);
  void MarkSuspect(Input& in);
  void HoldForSuspect(Input& in);
  void MarkRejoined(Input& in);
  void ResumeHeld(Input& in);
  void MarkGone(Input& in);
  void EndForGone(Input& in);
  void TakePrepared(Input& in);
  void TakeCommitted(Input& in);
  void TakeFinished(Input& in);
  void GiveUp(Input& in);
  void GiveUpFinishing(Input& in);

  LeaderActions Run(Event event, Input& in);
  Want WantOf(const Input& in) const;
  bool Answered(Rank from);
  void EnterPhase(LeaderState state);
  void StartSave(TimePoint now);
  void Try(TimePoint now);
  void TryAgain(const std::string& why, TimePoint now);
  void TryFurtherOff(const std::string& why, TimePoint now);
  void EndSave(const Status& status, TimePoint now, Nanoseconds held_back = {});
  void Settle(const Want& want, SaveId id, int64_t count, const Status& status, bool stands_in = false);
  void Bound(const std::optional<TimePoint>& deadline);
  bool BeforeStaged() const;
  bool StandsInFor(const Want& want, TimePoint now) const;
  void Next(TimePoint now);
  void EndSync();
  void Close(bool finished, const std::string& why);
  std::optional<int64_t> RestCount() const;
  int64_t ChooseBoundary(TimePoint now) const;
  bool AllFinal() const { return finals_ == options_.members; }
  std::string Missing() const;

  const LeaderOptions options_;

  LeaderState state_ = LeaderState::kIdle;
  std::vector<Peer> peers_;  // by rank
  uint32_t suspects_ = 0;
  uint32_t finals_ = 0;
  std::string gone_;  // why there are no more saves in this life; "" = none is gone
  std::optional<int64_t> committed_count_;
  bool end_tried_ = false;                                      // the save of cairn_finalize was begun
  bool stateless_ = false;                                      // a final member's state is gone
  std::string last_failure_;                                    // of the last save
  std::optional<Nanoseconds> write_time_, hurried_write_time_;  // of the last save
  std::optional<Want> pending_;
  uint64_t requests_ = 0;  // that came so far

  // The save under way.
  SaveId id_ = 0;
  Want current_;
  TimePoint deadline_;                     // also of kFinishing
  std::optional<TimePoint> own_deadline_;  // of requests, its own or of those that follow
  int failed_tries_ = 0;
  int aborts_ = 0;  // among them

  // The present try.
  TimePoint polled_at_;
  uint32_t missing_ = 0;  // members whose answer the present state waits for
  int64_t boundary_ = 0;
  int64_t count_ = 0;  // the count that the checkpoint holds
  int64_t label_ = 0;
  bool all_staged_ = false;
  TimePoint staged_at_;  // all had then

  LeaderActions out_;
};

}  // namespace cairn::agreement

#endif  // CAIRN_RUNTIME_AGREEMENT_LEADER_H_
