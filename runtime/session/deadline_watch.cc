#include "runtime/session/deadline_watch.h"

namespace cairn {

void DeadlineWatch::OnAnswer(std::optional<int64_t> seconds_left, TimePoint now) {
  retry_.reset();
  deadline_.reset();
  if (seconds_left) deadline_ = now + std::chrono::seconds(*seconds_left);
}

bool DeadlineWatch::OnSilence(TimePoint now) {
  const bool first = !retry_;
  // Where a deadline is known, the question was asked because it is near.
  retry_ = now + (deadline_ ? kRetryNear : kRetry);
  return first;
}

std::optional<DeadlineWatch::TimePoint> DeadlineWatch::next(std::chrono::milliseconds notice) const {
  if (retry_) return retry_;
  if (deadline_) return *deadline_ - notice;
  return std::nullopt;
}

}  // namespace cairn
