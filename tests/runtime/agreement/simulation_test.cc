// A job of 1 to 6 members in virtual time: random steps, delays, pauses, crashes, failures, quiet stretches and early ends, over links that
// deliver in order each but in any order among each other. Every run is a function of its seed alone.
//
// What must hold in each run is checked where it would be broken: search for Check(. CAIRN_SIMULATION_SEED=n runs one seed and prints it.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <tuple>

#include "tests/runtime/agreement/actions.h"

namespace cairn::agreement {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Task = std::function<void()>;

constexpr Nanoseconds kBoundaryWait = milliseconds(20);
constexpr Nanoseconds kSaveTimeout = milliseconds(1000);
constexpr Nanoseconds kFaultsCease = milliseconds(150);
constexpr Nanoseconds kLastRequest = milliseconds(200);
constexpr Nanoseconds kStepsCease = milliseconds(600);
constexpr Nanoseconds kEnd = milliseconds(6000);
constexpr int64_t kNever = -1;
#ifdef CAIRN_SANITIZED
constexpr int kSeeds = 300;
#else
constexpr int kSeeds = 2000;
#endif

struct Totals {
  int commits = 0, drops = 0, aborts = 0, nacks = 0, quiet_snapshots = 0, final_snapshots = 0, crashes = 0,
      stand_ins = 0, too_late = 0;
};

class Job {
 public:
  Job(uint64_t seed, Totals& totals, bool print) : random_(seed), totals_(totals), print_(print) {
    const auto members = static_cast<uint32_t>(1 + Random(6));
    for (Rank rank = 0; rank < members; ++rank) ranks_.push_back(std::make_unique<Process>(rank));
    leader_ = std::make_unique<Leader>(LeaderOptions{.members = members, .save_timeout = kSaveTimeout});
    faulty_ = Chance(70);
    max_delay_ = Chance(20) ? milliseconds(25) : Chance(50) ? milliseconds(2) : microseconds(100);
    spread_ = static_cast<int64_t>(Random(4));
    const auto base = microseconds(100 + Random(4000));
    quiet_every_ = Chance(40) ? static_cast<int64_t>(3 + Random(20)) : 0;
    quiet_alone_ = Chance(20);
    finish_early_ = Chance(20) ? static_cast<int64_t>(5 + Random(60)) : 0;
    labels_differ_ = Chance(3);
    for (auto& p : ranks_) {
      p->period = base * (100 + Random(50)) / 100;
      After(*p, Upto(base), [this, q = p.get()] { BeginStep(*q); });
    }
    const uint64_t requests = Random(8);
    for (uint64_t i = 0; i < requests; ++i) {
      static constexpr Trigger kReasons[] = {kTriggerPreempt, kTriggerTimeLimit, kTriggerInterval,
                                             kTriggerRequest};
      Process& p = Any();
      const Nanoseconds left = Chance(30) ? Upto(milliseconds(300)) : kNoLimit;
      After(p, Upto(kFaultsCease), [=, this, &p] { Ask(p, kReasons[Random(4)], left); });
    }
    if (faulty_) {
      while (Chance(40)) {
        Process& p = Any();
        const Nanoseconds length = Upto(milliseconds(60));
        At(Upto(kFaultsCease - milliseconds(60)), [=, this, &p] { Pause(p, length); });
      }
      if (Chance(35)) {
        Process& p = Any();
        At(Upto(kFaultsCease), [this, &p] { Crash(p); });
      }
    }
    At(kLastRequest, [this] { AskOnceMore(); });
    At(Nanoseconds(0), [this] { Tick(); });
  }

  // Runs to the end; "" or what went wrong.
  std::string Run() {
    while (!events_.empty() && fault_.empty() && now_ < kEnd) {
      Event event = events_.top();
      events_.pop();
      now_ = event.at;
      event.task();
    }
    if (!fault_.empty()) return fault_;
    for (auto& p : ranks_) {
      if (!p->alive) continue;
      Check(!p->held && !p->member.holds_application(), "rank held for ever", p->rank);
      Check(p->closed, "cairn_finalize has not returned", p->rank);
      Check(p->member.at_rest(), "a request or snapshot is left over", p->rank);
      Check(p->slot == 0, "a slot is left over", p->rank);
      Check(p->requests == p->answers, "not one answer for each request", p->rank);
      if (!crashed_ && !labels_differ_) Check(p->finished, "an undisturbed run is not finished", p->rank);
    }
    if (must_save_)
      Check(ranks_.back()->saved, "no save although the faults have ceased", ranks_.back()->rank);
    return fault_;
  }

 private:
  struct Process {
    explicit Process(Rank r) : rank(r), member({.boundary_wait = kBoundaryWait}) {}
    const Rank rank;
    Member member;
    bool alive = true;
    Nanoseconds paused_until{};
    Nanoseconds last_pause_end{};
    bool locked = false;            // the session's mutex
    std::deque<Task> waiting_lock;  // who waits for it
    // The application. Atomics are touched without the mutex.
    Nanoseconds period{};
    int64_t count = 0, armed = kNever;
    bool quiet = false, final = false;
    Task held;  // what the application does once it is let go
    Nanoseconds held_since{};
    // Bookkeeping.
    SaveId slot = 0;
    bool copying = false;
    int requests = 0, answers = 0;
    bool closed = false, finished = false, saved = false;
    Nanoseconds to_leader{}, to_member{};  // last delivery on each link
  };
  struct Event {
    Nanoseconds at;
    uint64_t order;
    Task task;
    bool operator<(const Event& other) const { return std::tie(other.at, other.order) < std::tie(at, order); }
  };
  struct Shot {
    int64_t boundary;
    bool staged = false;
    bool drained = false;
  };

  // ---- time and chance ----

  uint64_t Random(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }
  bool Chance(uint64_t percent) { return Random(100) < percent; }
  Nanoseconds Upto(Nanoseconds n) { return Nanoseconds(Random(static_cast<uint64_t>(n.count()) + 1)); }
  Process& Any() { return *ranks_[Random(ranks_.size())]; }
  TimePoint Now() const { return TimePoint(now_); }
  bool Failing() { return faulty_ && now_ < kFaultsCease && Chance(4); }

  void At(Nanoseconds at, Task task) { events_.push({at, ++order_, std::move(task)}); }
  // In this process: later while it is paused, never when it is dead.
  void After(Process& p, Nanoseconds delay, Task task) {
    At(now_ + delay, [this, &p, task = std::move(task)]() mutable { InProcess(p, std::move(task)); });
  }
  void InProcess(Process& p, Task task) {
    if (!p.alive) return;
    if (p.paused_until > now_) {
      return At(p.paused_until,
                [this, &p, task = std::move(task)]() mutable { InProcess(p, std::move(task)); });
    }
    task();
  }
  void Locked(Process& p, Task task) {
    if (p.locked) return p.waiting_lock.push_back(std::move(task));
    task();
  }
  void Unlock(Process& p) {
    p.locked = false;
    while (!p.locked && !p.waiting_lock.empty()) {
      const Task task = std::move(p.waiting_lock.front());
      p.waiting_lock.pop_front();
      task();
    }
  }
  void Check(bool holds, const std::string& what, Rank rank) {
    if (holds || !fault_.empty()) return;
    fault_ = what + ", rank " + std::to_string(rank) + " at " +
             std::to_string(std::chrono::duration<double, std::milli>(now_).count()) + " ms";
  }
  void Print(Rank rank, const std::string& text) {
    if (!print_) return;
    printf("%9.3f rank %u: %s\n", std::chrono::duration<double, std::milli>(now_).count(), rank,
           text.c_str());
  }

  // ---- the application ----

  void BeginStep(Process& p) {
    // Neighbours exchange halos: nobody runs further ahead than `spread_` steps.
    for (auto& other : ranks_) {
      if (other->alive && !other->final && other->count + spread_ < p.count) {
        return After(p, microseconds(50), [this, &p] { BeginStep(p); });
      }
    }
    if (now_ > kStepsCease && p.count >= last_count_) return Finalize(p);
    if (finish_early_ && p.count >= finish_early_ + static_cast<int64_t>(p.rank) % 2 && p.rank != 0)
      return Finalize(p);
    After(p, p.period / 2 + Upto(p.period), [this, &p] { EndStep(p); });
  }

  // cairn_step, in the three moments in which another thread may come between.
  void EndStep(Process& p) {
    const int64_t c = ++p.count;
    if (now_ <= kStepsCease) last_count_ = std::max(last_count_, c);
    After(p, Upto(microseconds(20)), [this, &p, c] {
      if (p.armed != c) return AfterStep(p);
      After(p, Upto(microseconds(20)), [this, &p, c] {
        Locked(p, [this, &p, c] {
          Do(p, p.member.OnBoundary(c, Label(p), Now()));
          Hold(p, [this, &p] { AfterStep(p); });
        });
      });
    });
  }

  void AfterStep(Process& p) {
    if (!quiet_every_ || p.count % quiet_every_ != 0 || (quiet_alone_ && p.rank != 0)) return BeginStep(p);
    p.quiet = true;
    Locked(p, [this, &p] {
      Do(p, p.member.OnQuietBegin(p.count, Label(p)));
      After(p, Upto(milliseconds(30)), [this, &p] {
        Locked(p, [this, &p] {
          Do(p, p.member.OnQuietEnd(Now()));
          Hold(p, [this, &p] {
            p.quiet = false;
            BeginStep(p);
          });
        });
      });
    });
  }

  void Finalize(Process& p) {
    p.final = true;
    Locked(p, [this, &p] {
      Do(p, p.member.OnFinalized(p.count, Label(p)));
      Hold(p, [] {});
    });
  }

  int64_t Label(const Process& p) const { return labels_differ_ && p.rank == 1 ? p.count + 1 : p.count; }

  void Hold(Process& p, Task then) {
    p.held = std::move(then);
    p.held_since = now_;
    Poke(p);
  }
  // What the waiting application does when the condition variable is notified.
  void Poke(Process& p) {
    if (!p.held) return;
    if (!p.member.holds_application()) {
      const Task then = std::exchange(p.held, {});
      return then();
    }
    const auto until = p.member.wait_until();
    if (!until) return;
    const Nanoseconds at = until->time_since_epoch();
    Check(at <= p.held_since + kBoundaryWait, "waits beyond the bound", p.rank);
    Check(now_ <= std::max({at, p.held_since, p.last_pause_end}) + milliseconds(1),
          "waits on after its bound", p.rank);
    At(std::max(at, now_), [this, &p] {
      InProcess(p, [this, &p] { Locked(p, [this, &p] { Do(p, p.member.OnWaitExpired(Now())); }); });
    });
  }

  // ---- the member's session ----

  void Ask(Process& p, Trigger reason, Nanoseconds left) {
    Locked(p, [=, this, &p] {
      ++p.requests;
      Print(p.rank, "asks for a save: " + std::string(TriggerName(reason)));
      Do(p, p.member.OnTrigger(reason, left, ""));
    });
  }

  // The faults have ceased: as soon as nothing is under way, one more save is asked for, and must come about.
  void AskOnceMore() {
    if (crashed_ || labels_differ_ || leader_->state() == LeaderState::kClosed) return;
    if (leader_->state() != LeaderState::kIdle) return At(now_ + milliseconds(5), [this] { AskOnceMore(); });
    must_save_ = true;
    Ask(*ranks_.back(), kTriggerRequest, kNoLimit);
  }

  void Do(Process& p, const MemberActions& actions) {
    for (const MemberAction& action : actions) std::visit([&](const auto& a) { Act(p, a); }, action);
    Poke(p);
  }
  void Act(Process& p, const Send& a) {
    totals_.aborts += std::holds_alternative<Abort>(a.message);
    totals_.nacks += std::holds_alternative<Nack>(a.message);
    Print(p.rank, "sends message " + std::to_string(a.message.index()));
    p.to_leader = std::max(p.to_leader, now_ + Upto(max_delay_));
    At(p.to_leader, [this, from = p.rank, bytes = Encode(a.message)] {
      InProcess(*ranks_[0], [=, this] { DoLeader(leader_->OnMessage(from, *DecodeToLeader(bytes), Now())); });
    });
  }
  void Act(Process& p, const Arm& a) {
    p.armed = a.boundary;
    p.locked = true;
    After(p, Upto(microseconds(20)), [this, &p] {
      Do(p, p.member.OnArmed(p.count));
      Unlock(p);
    });
  }
  void Act(Process& p, const Disarm&) { p.armed = kNever; }
  void Act(Process& p, const TakeSnapshot& a) {
    Check(!p.copying && p.slot == 0, "two snapshots at once", p.rank);
    Check(p.final || p.count == a.boundary, "a snapshot beside the boundary", p.rank);
    Check(!p.final || p.count <= a.boundary, "a final image for an earlier boundary", p.rank);
    for (auto& other : shots_[a.id])
      Check(other.second.boundary == a.boundary, "two boundaries under one id", p.rank);
    totals_.quiet_snapshots += a.mode == Mode::kQuiet;
    totals_.final_snapshots += a.mode == Mode::kFinal;
    shots_[a.id][p.rank] = {a.boundary};
    p.slot = a.id;
    p.copying = true;
    Print(p.rank, "takes snapshot " + std::to_string(a.id) + " at " + std::to_string(a.boundary));
    After(p, Upto(milliseconds(8)), [this, &p, a, c = p.count, failing = Failing()] {
      Check(p.count == c, "the state moved during the copy", p.rank);
      Locked(p, [=, this, &p] {
        p.copying = false;
        shots_[a.id][p.rank].staged = !failing;
        Do(p, p.member.OnSnapshotted(a.id, failing ? Status(Code::kNoSpace, "no slot") : OkStatus()));
      });
    });
  }
  void Act(Process& p, const StartDrain& a) {
    Check(p.slot == a.id, "a drain without a slot", p.rank);
    for (auto& q : ranks_) {
      Check(shots_[a.id].contains(q->rank) && shots_[a.id][q->rank].staged, "a drain before all have staged",
            q->rank);
    }
    After(p, Upto(milliseconds(20)), [this, &p, a, failing = Failing()] {
      Locked(p, [=, this, &p] {
        shots_[a.id][p.rank].drained = !failing;
        Do(p, failing ? p.member.OnDrained(a.id, Status(Code::kIo, "EIO"))
                      : p.member.OnDrained(a.id, std::to_string(a.id) + ":" + std::to_string(p.rank)));
      });
    });
  }
  void Act(Process& p, const Ended& a) {
    Check(p.slot == a.id && !p.copying, "an end without a snapshot", p.rank);
    if (a.outcome == Outcome::kCommitted)
      Check(committed_.contains(a.id), "told of a commit that was none", p.rank);
    p.slot = 0;
  }
  void Act(Process& p, const Answered& a) {
    Print(p.rank, "is answered: " + (a.status.ok() ? "saved" : a.status.message()));
    ++p.answers;
    p.saved = a.status.ok();
  }
  void Act(Process& p, const Closed& a) {
    Check(!p.closed, "closed twice", p.rank);
    p.closed = true;
    p.finished = a.status.ok();
  }

  // ---- the leader's session ----

  void DoLeader(const LeaderActions& actions) {
    for (const LeaderAction& action : actions) std::visit([&](const auto& a) { Act(a); }, action);
  }
  void Deliver(Process& p, const ToMember& message) {
    Print(p.rank, "is sent message " + std::to_string(message.index()));
    p.to_member = std::max(p.to_member, now_ + Upto(max_delay_));
    At(p.to_member, [this, &p, bytes = Encode(message)] {
      InProcess(p, [=, this, &p] {
        Locked(p, [=, this, &p] {
          Do(p, p.member.OnMessage(*DecodeToMember(bytes), {p.count, p.period}, Now()));
        });
      });
    });
  }
  void Act(const SendTo& a) { Deliver(*ranks_[a.to], a.message); }
  void Act(const Broadcast& a) {
    for (auto& p : ranks_) Deliver(*p, a.message);
  }
  void Act(const Begun& a) { Print(0, "begins a save: " + std::string(TriggerName(a.reason))); }
  void Act(const Prepare& a) {
    After(*ranks_[0], Upto(milliseconds(3)), [this, a, failing = Failing()] {
      DoLeader(failing ? leader_->OnPrepared(a.id, Status(Code::kNoSpace, "mkdir"), Now())
                       : leader_->OnPrepared(a.id, "attempt-" + std::to_string(a.id), Now()));
    });
  }
  void Act(const Commit& a) {
    int64_t newest = 0;
    bool all_final = true;
    for (auto& p : ranks_) {
      const auto shot = shots_[a.id].find(p->rank);
      Check(shot != shots_[a.id].end() && shot->second.staged && shot->second.drained,
            "a commit lacks a snapshot", p->rank);
      Check(a.records[p->rank] == std::to_string(a.id) + ":" + std::to_string(p->rank),
            "a commit lacks a record", p->rank);
      newest = std::max(newest, p->count);
      all_final = all_final && p->final;
      if (fault_.empty() && !all_final)
        Check(shot->second.boundary >= a.count, "a count beyond the boundary", p->rank);
    }
    Check(a.count <= newest, "a count that nobody has reached", 0);
    After(*ranks_[0], Upto(milliseconds(5)), [this, a, failing = Failing()] {
      if (!failing) committed_.insert(a.id);
      totals_.commits += !failing;
      DoLeader(leader_->OnCommitted(a.id, failing ? Status(Code::kIo, "rename") : OkStatus(), Now()));
    });
  }
  void Act(const Finish&) {
    for (auto& p : ranks_) Check(p->final, "finished while a rank still runs", p->rank);
    After(*ranks_[0], Upto(milliseconds(1)), [this] { DoLeader(leader_->OnFinished(OkStatus(), Now())); });
  }
  void Act(const SaveEnded& a) {
    totals_.drops += !a.status.ok();
    totals_.stand_ins += a.stands_in;
    totals_.too_late += a.status.message().find("too short to write it") != std::string::npos;
    Check(!a.stands_in || (a.status.ok() && committed_.count(a.id) > 0), "nothing stands in for a save", 0);
    Print(0, "save " + std::to_string(a.id) + (a.status.ok() ? " durable" : ": " + a.status.message()));
  }
  void Act(const Note& a) { Print(0, a.text); }
  void Tick() {
    InProcess(*ranks_[0], [this] {
      const auto due = leader_->next_tick();
      Check(due.has_value() || leader_->state() == LeaderState::kIdle ||
                leader_->state() == LeaderState::kClosed,
            "a leader state without deadline", 0);
      // More than once, since the save that follows may have no time left either.
      for (int i = 0; i < 4; ++i) DoLeader(leader_->OnTick(Now()));
      Check(!leader_->next_tick() || *leader_->next_tick() > Now(),
            "a deadline has passed and nothing happened", 0);
      At(now_ + milliseconds(1), [this] { Tick(); });
    });
  }

  // ---- faults ----

  void Pause(Process& p, Nanoseconds length) {
    if (!p.alive) return;
    Print(p.rank, "pauses");
    p.paused_until = std::max(p.paused_until, now_ + length);
    p.last_pause_end = p.paused_until;
    if (p.rank == 0) return;
    At(now_ + milliseconds(10), [this, &p] {
      if (p.paused_until > now_)
        InProcess(*ranks_[0], [this, &p] { DoLeader(leader_->OnSuspect(p.rank, Now())); });
    });
    At(p.paused_until + milliseconds(5),
       [this, &p] { InProcess(*ranks_[0], [this, &p] { DoLeader(leader_->OnRejoined(p.rank, Now())); }); });
  }
  void Crash(Process& p) {
    Print(p.rank, "dies");
    p.alive = false;
    crashed_ = true;
    ++totals_.crashes;
    if (p.rank != 0) {
      p.to_leader += Upto(milliseconds(5));
      return At(std::max(p.to_leader, now_), [this, &p] {
        InProcess(*ranks_[0], [this, &p] {
          DoLeader(leader_->OnGone(p.rank, "killed", Now()));
          const LeaderState s = leader_->state();
          const bool recorded = s == LeaderState::kDraining && shots_[leader_->id()][p.rank].drained;
          Check(recorded || s == LeaderState::kCommitting || s == LeaderState::kFinishing ||
                    s == LeaderState::kClosed,
                "the leader waits for a dead rank", p.rank);
        });
      });
    }
    for (auto& other : ranks_) {
      At(std::max(other->to_member, now_) + Upto(milliseconds(5)), [this, q = other.get()] {
        InProcess(*q, [this, q] { Locked(*q, [this, q] { Do(*q, q->member.OnLeaderGone("killed")); }); });
      });
    }
  }

  std::mt19937_64 random_;
  Totals& totals_;
  const bool print_;
  Nanoseconds now_{};
  uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  std::string fault_;

  std::vector<std::unique_ptr<Process>> ranks_;
  std::unique_ptr<Leader> leader_;
  bool faulty_ = false, quiet_alone_ = false, labels_differ_ = false, crashed_ = false, must_save_ = false;
  Nanoseconds max_delay_{};
  int64_t spread_ = 0, quiet_every_ = 0, finish_early_ = 0, last_count_ = 0;
  std::map<SaveId, std::map<Rank, Shot>> shots_;
  std::set<SaveId> committed_;
  std::set<Rank> suspects_;
};

TEST(AgreementSimulation, NoRandomRunBreaksAnInvariant) {
  const char* one = std::getenv("CAIRN_SIMULATION_SEED");
  const uint64_t first = one ? std::strtoull(one, nullptr, 10) : 1;
  const uint64_t last = one ? first : kSeeds;
  Totals totals;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const std::string fault = Job(seed, totals, one != nullptr).Run();
    ASSERT_EQ(fault, "") << "CAIRN_SIMULATION_SEED=" << seed;
  }
  if (one) return;
  // The runs must have come to the places where something can break.
  EXPECT_GT(totals.commits, kSeeds);
  EXPECT_GT(totals.drops, kSeeds / 4);
  EXPECT_GT(totals.aborts, kSeeds / 40);
  EXPECT_GT(totals.nacks, kSeeds / 20);
  EXPECT_GT(totals.quiet_snapshots, kSeeds / 20);
  EXPECT_GT(totals.final_snapshots, kSeeds / 2);
  EXPECT_GT(totals.crashes, kSeeds / 10);
  EXPECT_GT(totals.stand_ins, 0);
  EXPECT_GT(totals.too_late, kSeeds / 200);
  printf(
      "commits %d, drops %d, aborts %d, nacks %d, quiet %d, final %d, crashes %d, stand-ins %d, too late "
      "%d\n",
      totals.commits, totals.drops, totals.aborts, totals.nacks, totals.quiet_snapshots,
      totals.final_snapshots, totals.crashes, totals.stand_ins, totals.too_late);
}

}  // namespace
}  // namespace cairn::agreement
