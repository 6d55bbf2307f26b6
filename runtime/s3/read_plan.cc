#include "runtime/s3/read_plan.h"

#include <algorithm>

namespace cairn {

std::vector<PlannedRead> PlanReads(std::span<const ObjectRange> ranges, uint64_t gap, uint64_t longest) {
  std::vector<ObjectRange> sorted(ranges.begin(), ranges.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.offset < b.offset; });
  std::vector<PlannedRead> plan;
  for (ObjectRange range : sorted) {
    while (!range.to.empty()) {
      const uint64_t end = plan.empty() ? 0 : plan.back().offset + plan.back().bytes;
      // It joins the last request where that leaves room for a byte of it at least.
      const bool joins = !plan.empty() && range.offset >= end && range.offset - end <= gap &&
                         range.offset - plan.back().offset < longest;
      if (!joins) plan.push_back({range.offset});
      PlannedRead& read = plan.back();
      if (joins && range.offset > end) {
        read.into.push_back({nullptr, range.offset - end});
        read.bytes += range.offset - end;
      }
      const size_t n = std::min<uint64_t>(range.to.size(), longest - read.bytes);
      read.into.push_back({range.to.data(), n});
      read.bytes += n;
      range.to = range.to.subspan(n);
      range.offset += n;
    }
  }
  return plan;
}

}  // namespace cairn
