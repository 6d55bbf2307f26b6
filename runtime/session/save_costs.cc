#include "runtime/session/save_costs.h"

#include <algorithm>

namespace cairn {

void SaveCosts::Enter(Phase phase, int64_t count, TimePoint now) {
  phase_ = phase;
  from_count_ = count;
  from_ = now;
}

void SaveCosts::OnIdle(int64_t count, TimePoint now) {
  if (phase_ != Phase::kIdle) Enter(Phase::kIdle, count, now);
}

void SaveCosts::OnBegun(int64_t count, TimePoint now) {
  if (phase_ == Phase::kIdle) {
    idle_.count += count - from_count_;
    idle_.time += now - from_;
  }
  Enter(Phase::kOther, count, now);
}

void SaveCosts::OnStaged(int64_t count, TimePoint now) { Enter(Phase::kWriting, count, now); }

void SaveCosts::OnSaved(int64_t count, TimePoint now, Nanoseconds stall) {
  if (phase_ == Phase::kWriting) {
    writing_.count += count - from_count_;
    writing_.time += now - from_;
  }
  ++saves_;
  stalls_ += stall;
  Enter(Phase::kOther, count, now);
}

SaveCosts::Nanoseconds SaveCosts::stall() const { return saves_ == 0 ? Nanoseconds(0) : stalls_ / saves_; }

std::optional<SaveCosts::Nanoseconds> SaveCosts::slow_down() const {
  if (writing_.count < kMinSteps || idle_.count < kMinSteps) return std::nullopt;
  const double step_ns = static_cast<double>(idle_.time.count()) / static_cast<double>(idle_.count);
  const double lost_ns =
      static_cast<double>(writing_.time.count()) - static_cast<double>(writing_.count) * step_ns;
  return Nanoseconds(static_cast<int64_t>(std::max(lost_ns, 0.0) / static_cast<double>(saves_)));
}

}  // namespace cairn
