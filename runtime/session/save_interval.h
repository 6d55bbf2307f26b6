// SaveInterval: when the interval's next save is due, as --checkpoint says: a time, a number of steps, or `auto`. Pure; the coordinator
// asks, and sets its timer.
//
// `auto` is the interval that loses the least time to saving and to repeating what a failure undid:
//
//     w = sqrt(2·d·M) · (1 + sqrt(d / 2M) / 3 + d / 18M) - d      for d < 2M, else M
//
// d = what a save costs the program (SaveCosts), M = the mean time between failures (--checkpoint-mtbf), w = the time from one save to the
// next. It is Daly's higher-order form (J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, Future
// Generation Computer Systems 22, 2006) of Young's sqrt(2·d·M) (CACM 17, 1974). Preemptions and time limits come with notice and are
// saved for, so M is of the failures that come without.
#ifndef CAIRN_RUNTIME_SESSION_SAVE_INTERVAL_H_
#define CAIRN_RUNTIME_SESSION_SAVE_INTERVAL_H_

#include <chrono>
#include <optional>
#include <string>

#include "runtime/agreement/member.h"
#include "runtime/session/save_costs.h"
#include "runtime/settings.h"

namespace cairn {

// The formula alone.
Nanoseconds DalyInterval(Nanoseconds cost, Nanoseconds mtbf);

class SaveInterval {
 public:
  // Before a save was measured, and the bounds of what is chosen.
  static constexpr Nanoseconds kFirst = std::chrono::minutes(5);
  static constexpr Nanoseconds kLeast = std::chrono::minutes(1);
  static constexpr Nanoseconds kMost = std::chrono::hours(4);

  explicit SaveInterval(const Settings& settings) : settings_(settings) {}

  void Start(int64_t count);  // that was restored

  // `write_time`: of the last save; a save is not asked for again before the last one could be durable.
  void Learn(const SaveCosts& costs, std::optional<Nanoseconds> write_time);

  // From now until Due should be asked; nothing = never, there is no interval.
  std::optional<std::chrono::milliseconds> Wait(const agreement::Progress& progress) const;
  // Whether to save now. With steps: as many boundaries ahead as the agreement needs, so that the save falls on the multiple or soon after.
  bool Due(const agreement::Progress& progress);

  // In time, as far as that is known; nothing = never, or not known yet.
  std::optional<Nanoseconds> Every(const agreement::Progress& progress) const;
  // "every 7 m 0 s (auto: a save costs 0.4 s, mean time between failures 1 d 0 h)", "every 500 steps", "never"
  std::string Describe() const;

 private:
  Nanoseconds Chosen() const;

  const Settings& settings_;
  int64_t next_count_ = 0;  // with a setting in steps
  std::optional<SaveCosts> costs_;
  Nanoseconds write_time_{};
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_SAVE_INTERVAL_H_
