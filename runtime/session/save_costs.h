// SaveCosts: what the saves of this life have cost, as measured by the leader. Pure: fed the count of cairn_step calls and the time.
//
// A save costs the program the stall of its copy, and that its steps are slower while it is written in the background (both share memory,
// cores and network). The second part is the time in which saves were written, less the time that the same number of steps takes while no
// save is under way. A count says where the program stands only to a step, so it is known once saves have been written during kMinSteps
// steps.
#ifndef CAIRN_RUNTIME_SESSION_SAVE_COSTS_H_
#define CAIRN_RUNTIME_SESSION_SAVE_COSTS_H_

#include <chrono>
#include <cstdint>
#include <optional>

namespace cairn {

class SaveCosts {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Nanoseconds = std::chrono::nanoseconds;
  static constexpr int64_t kMinSteps = 10;

  void OnIdle(int64_t count, TimePoint now);                      // from here on no save is under way
  void OnBegun(int64_t count, TimePoint now);                     // one is being agreed on
  void OnStaged(int64_t count, TimePoint now);                    // all have copied; it is being written
  void OnSaved(int64_t count, TimePoint now, Nanoseconds stall);  // it is durable

  int64_t saves() const { return saves_; }
  Nanoseconds stall() const;                     // mean; 0 before the first save
  std::optional<Nanoseconds> slow_down() const;  // mean of a save; nothing = not known yet
  Nanoseconds cost() const { return stall() + slow_down().value_or(Nanoseconds(0)); }

 private:
  struct Steps {
    int64_t count = 0;
    Nanoseconds time{};
  };
  enum class Phase { kOther, kIdle, kWriting };
  void Enter(Phase phase, int64_t count, TimePoint now);

  Phase phase_ = Phase::kOther;
  int64_t from_count_ = 0;
  TimePoint from_;
  Steps idle_, writing_;
  int64_t saves_ = 0;
  Nanoseconds stalls_{};
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_SAVE_COSTS_H_
