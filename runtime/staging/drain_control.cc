#include "runtime/staging/drain_control.h"

#include <utility>

namespace cairn {

void DrainControl::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
  if (on_cancel_) on_cancel_();
}

void DrainControl::OnCancel(std::function<void()> fn) {
  const std::lock_guard lock(mutex_);
  on_cancel_ = std::move(fn);
  if (on_cancel_ && cancelled_) on_cancel_();
}

void DrainControl::Hurry() {
  const std::lock_guard lock(mutex_);
  hurried_ = true;
  changed_.notify_all();
}

void DrainControl::SleepUntil(Pace::TimePoint when) {
  const auto begin = std::chrono::steady_clock::now();
  if (when <= begin) return;
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, when, [this] { return cancelled_ || hurried_; });
  held_back_ns_ +=
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace cairn
