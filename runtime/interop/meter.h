// Meter: turns "so many bytes more" into "so many of so many". One thread.
#ifndef CAIRN_RUNTIME_INTEROP_METER_H_
#define CAIRN_RUNTIME_INTEROP_METER_H_

#include <cstdint>
#include <span>

#include "runtime/interop/array_source.h"
#include "runtime/interop/name_map.h"

namespace cairn {

class Meter {
 public:
  // For a copy of these arrays. `progress` may be empty, and outlives this.
  Meter(const ArraySource& source, std::span<const NamedArray> arrays, const Progress& progress)
      : progress_(progress) {
    for (const NamedArray& named : arrays) total_ += ArrayBytes(source.arrays()[named.array]);
  }
  void operator()(uint64_t bytes) {
    done_ += bytes;
    if (progress_) progress_(done_, total_);
  }
  uint64_t total() const { return total_; }

 private:
  const Progress& progress_;
  uint64_t done_ = 0, total_ = 0;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_METER_H_
