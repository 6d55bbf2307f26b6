#include "runtime/staging/pace.h"

#include <algorithm>

namespace cairn {

Pace::TimePoint Pace::Take(uint64_t bytes, TimePoint now) {
  if (bytes_per_second_ == 0) return now;
  const TimePoint begin = std::max(paid_, now - std::chrono::milliseconds(100));
  const std::chrono::duration<double> cost(static_cast<double>(bytes) /
                                           static_cast<double>(bytes_per_second_));
  paid_ = begin + std::chrono::duration_cast<TimePoint::duration>(cost);
  return std::max(begin, now);
}

}  // namespace cairn
