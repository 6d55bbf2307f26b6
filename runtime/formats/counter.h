// Counter: the content of ALIVE-<epoch> and of a read-lease. Its owner raises it every few seconds; others
// see that it moves, or not. docs/design/formats.md, section 7. BeatFile and BeatWatch
// (runtime/catalog/beat.h) write and watch it.
#ifndef CAIRN_RUNTIME_FORMATS_COUNTER_H_
#define CAIRN_RUNTIME_FORMATS_COUNTER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "planner/base/status.h"

namespace cairn {

inline constexpr uint64_t kCounterBytes = 48;

struct Counter {
  uint64_t value = 0;
  bool left = false;  // the owner has gone in good order

  friend bool operator==(const Counter&, const Counter&) = default;
};

std::string EncodeCounter(const Counter& counter);

// kDamage, also for a torn read: the reader looks again later.
Result<Counter> DecodeCounter(std::string_view bytes);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_COUNTER_H_
