#include "planner/base/box.h"

namespace cairn {

std::string Dims::ToString() const {
  std::string s = "[";
  for (int i = 0; i < size_; ++i) s += (i ? ", " : "") + std::to_string((*this)[i]);
  return s + "]";
}

bool Box::Contains(const Box& other) const {
  for (int i = 0; i < rank(); ++i) {
    if (other.offset[i] < offset[i] || other.offset[i] + other.extent[i] > offset[i] + extent[i]) return false;
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

}  // namespace cairn
