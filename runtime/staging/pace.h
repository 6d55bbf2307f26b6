// Pace: how fast a drain may write, in bytes per second: a token bucket. Pure; one thread.
#ifndef CAIRN_RUNTIME_STAGING_PACE_H_
#define CAIRN_RUNTIME_STAGING_PACE_H_

#include <chrono>
#include <cstdint>

namespace cairn {

class Pace {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Pace(uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}  // 0 = no limit

  // When a write of `bytes`, wanted `now`, may begin. It is counted from then on: the next one begins when this one is paid for. What was
  // not used is kept for a tenth of a second, so that the rate is reached though sleeps are never exact.
  TimePoint Take(uint64_t bytes, TimePoint now);

 private:
  const uint64_t bytes_per_second_;
  TimePoint paid_ = TimePoint::min();  // when all that was taken is paid for
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_PACE_H_
