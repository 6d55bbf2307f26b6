#include "planner/base/box.h"

#include <utility>

namespace cairn {

std::string Dims::ToString() const {
  std::string s = "[";
  for (int i = 0; i < size_; ++i) s += (i ? ", " : "") + std::to_string((*this)[i]);
  return s + "]";
}

bool Box::Contains(const Box& other) const {
  for (int i = 0; i < rank(); ++i) {
    if (other.offset[i] < offset[i] || other.offset[i] + other.extent[i] > offset[i] + extent[i])
      return false;
  }
  return true;
}

std::string Box::ToString() const {
  std::string s = "[";
  for (int i = 0; i < rank(); ++i) {
    s += (i ? ", " : "") + std::to_string(offset[i]) + ":" + std::to_string(offset[i] + extent[i]);
  }
  return s + "]";
}

std::optional<Box> Intersect(const Box& a, const Box& b) {
  Box out;
  for (int i = 0; i < a.rank(); ++i) {
    const int64_t lo = std::max(a.offset[i], b.offset[i]);
    const int64_t hi = std::min(a.offset[i] + a.extent[i], b.offset[i] + b.extent[i]);
    if (lo >= hi) return std::nullopt;
    out.offset.push_back(lo);
    out.extent.push_back(hi - lo);
  }
  return out;
}

void Subtract(const Box& from, const Box& cut, std::vector<Box>* rest) {
  Box core = from;  // shrinks to `cut`, one dimension after the other; what is cut off is a slab of the rest
  for (int i = 0; i < from.rank(); ++i) {
    const int64_t lo = core.offset[i], hi = lo + core.extent[i];
    const int64_t cut_lo = cut.offset[i], cut_hi = cut_lo + cut.extent[i];
    for (const auto& [begin, end] : {std::pair(lo, cut_lo), std::pair(cut_hi, hi)}) {
      if (begin == end) continue;
      core.offset[i] = begin;
      core.extent[i] = end - begin;
      rest->push_back(core);
    }
    core.offset[i] = cut_lo;
    core.extent[i] = cut.extent[i];
  }
}

}  // namespace cairn
