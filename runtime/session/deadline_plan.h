// DeadlinePlan: what can be made safe before a deadline, and what would be at the next one. Pure: measured numbers in, a decision and one
// line for the log out.
//
// The decision is the one that agreement::Leader comes to from the same numbers (docs/design/agreement.md, "When time is short"); nothing
// here is sent to it. A save under way is finished first, always. Times are those that the last save would have taken without a limit on
// the drain, which is lifted before a deadline; the way to a boundary is two steps.
#ifndef CAIRN_RUNTIME_SESSION_DEADLINE_PLAN_H_
#define CAIRN_RUNTIME_SESSION_DEADLINE_PLAN_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace cairn {

// What saving takes, as far as it was measured.
struct SaveTimes {
  using Nanoseconds = std::chrono::nanoseconds;
  uint64_t bytes = 0;
  Nanoseconds step{};   // between two boundaries; 0 = not known
  Nanoseconds stall{};  // of the copy
  std::optional<Nanoseconds>
      write_time;  // from all having staged to the commit, in a hurry; nothing = no save of this life was measured

  Nanoseconds way() const { return 2 * step; }  // to the boundary
  // From the wish to the commit; nothing = not known.
  std::optional<Nanoseconds> all() const {
    if (!write_time) return std::nullopt;
    return way() + stall + *write_time;
  }
};

struct DeadlineFacts {
  std::chrono::nanoseconds left{};  // until what is saved must be durable
  SaveTimes times;
  enum class UnderWay {
    kNothing,   // or a save without a boundary yet, which the new wish joins
    kBoundary,  // a save that not all have staged
    kWriting,   // a save that all have staged
  } under_way = UnderWay::kNothing;
  int64_t boundary = 0;  // of the save under way
  std::chrono::nanoseconds
      written{};                   // with kWriting: as much as was done already would take so long in a hurry
  std::optional<int64_t> durable;  // the newest step that is durable
};

struct DeadlinePlan {
  enum class Decision {
    kSave,            // at the next boundary
    kFinish,          // what is under way, and nothing newer: it would not fit
    kFinishThenSave,  // what is under way, then a newer one
    kKeep,  // no boundary is expected in time: the newest durable step stands, unless one comes after all
  };
  Decision decision = Decision::kSave;
  std::string line;
};

DeadlinePlan PlanDeadline(const DeadlineFacts& facts);

// What was written in `elapsed` would have taken so long in a hurry, by what the last save took and would have taken. Before a deadline a limit on
// the drain (CAIRN_DRAIN_LIMIT) does not count, for what is left.
std::chrono::nanoseconds HurriedPart(std::chrono::nanoseconds elapsed,
                                     std::optional<std::chrono::nanoseconds> write_time,
                                     std::optional<std::chrono::nanoseconds> hurried_write_time);

// The fit line: what a preemption would find, as things are now. It is said once, and again when the class changes.
struct Fit {
  enum class Class { kNotMeasured, kFits, kTooLong };
  Class kind = Class::kNotMeasured;
  std::string line;
};

// warning: what a preemption leaves from its signal to the kill. every: the time from one save to the next, where it is known.
Fit FitOf(std::chrono::nanoseconds warning, const SaveTimes& times,
          std::optional<std::chrono::nanoseconds> every);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_DEADLINE_PLAN_H_
