// DeadlineWatch: when to ask Slurm whether the time limit is near. Pure: fed what Slurm said and the time.
//
//  1. Slurm tells the seconds left → the question comes again `notice` before they are over. The notice changes with the cost of a save, so
//     it is given to next() and not kept.
//  2. There is no limit → never again.
//  3. Slurm is silent → again after kRetry; after kRetryNear when an earlier answer says that the limit is near. What was told before stands.
#ifndef CAIRN_RUNTIME_SESSION_DEADLINE_WATCH_H_
#define CAIRN_RUNTIME_SESSION_DEADLINE_WATCH_H_

#include <chrono>
#include <cstdint>
#include <optional>

namespace cairn {

class DeadlineWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kRetry{30};
  static constexpr std::chrono::seconds kRetryNear{5};

  void OnAnswer(std::optional<int64_t> seconds_left, TimePoint now);
  // True when this is the first silence since the last answer, which is worth a line in the log.
  bool OnSilence(TimePoint now);

  bool known() const { return deadline_.has_value(); }  // that there is a limit, and when it ends
  // When to ask; it may have passed. Nothing = never.
  std::optional<TimePoint> next(std::chrono::milliseconds notice) const;

 private:
  std::optional<TimePoint> deadline_;
  std::optional<TimePoint> retry_;  // Slurm was silent
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_DEADLINE_WATCH_H_
