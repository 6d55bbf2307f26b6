#include "planner/cuts.h"

#include <algorithm>
#include <limits>

namespace cairn {

Result<Cuts> Cuts::FromRuns(std::span<const Run> runs) {
  constexpr uint64_t kMaxParts = std::numeric_limits<uint32_t>::max();
  constexpr uint64_t kMaxExtent = std::numeric_limits<int64_t>::max();
  Cuts cuts;
  for (const Run& run : runs) {
    if (run.parts == 0 || run.length == 0 || run.parts > kMaxParts - cuts.parts_ ||
        run.length > (kMaxExtent - cuts.extent_) / run.parts) {
      return Status(Code::kInvalid, std::to_string(run.parts) + " parts of " + std::to_string(run.length) +
                                        " elements after " + std::to_string(cuts.extent_));
    }
    cuts.Append(run);
  }
  if (runs.empty()) return Status(Code::kInvalid, "a dimension without parts");
  return cuts;
}

Cuts Cuts::FromLengths(std::span<const int64_t> lengths) {
  Cuts cuts;
  for (size_t i = 0; i < lengths.size();) {
    size_t end = i + 1;
    while (end < lengths.size() && lengths[end] == lengths[i]) ++end;
    cuts.Append({end - i, static_cast<uint64_t>(lengths[i])});
    i = end;
  }
  return cuts;
}

void Cuts::Append(const Run& run) {
  begins_.push_back({parts_, extent_});
  runs_.push_back(run);
  parts_ += run.parts;
  extent_ += run.parts * run.length;
}

Cuts::Part Cuts::At(uint32_t part) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), part,
                                      [](uint64_t p, const Begin& b) { return p < b.part; });
  const auto run = static_cast<size_t>(after - begins_.begin()) - 1;
  const uint64_t length = runs_[run].length;
  return {static_cast<int64_t>(begins_[run].element + (part - begins_[run].part) * length),
          static_cast<int64_t>(length)};
}

uint32_t Cuts::PartOf(int64_t element) const {
  const auto at = static_cast<uint64_t>(element);
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), at,
                                      [](uint64_t e, const Begin& b) { return e < b.element; });
  const auto run = static_cast<size_t>(after - begins_.begin()) - 1;
  return static_cast<uint32_t>(begins_[run].part + (at - begins_[run].element) / runs_[run].length);
}

}  // namespace cairn
