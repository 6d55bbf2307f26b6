#include "planner/box_index.h"

#include <algorithm>
#include <limits>

namespace cairn {

BoxIndex::BoxIndex(const std::vector<const Box*>& boxes) {
  entries_.reserve(boxes.size());
  for (uint32_t id = 0; id < boxes.size(); ++id) {
    if (!boxes[id]->empty()) entries_.push_back({boxes[id], id});
  }
  if (entries_.empty()) return;

  double finest = std::numeric_limits<double>::infinity();  // longest box as a share of what all of them span
  for (int d = 0; d < entries_[0].box->rank(); ++d) {
    int64_t begin = std::numeric_limits<int64_t>::max(), end = 0, longest = 0;
    for (const Entry& e : entries_) {
      begin = std::min(begin, e.box->offset[d]);
      end = std::max(end, e.box->offset[d] + e.box->extent[d]);
      longest = std::max(longest, e.box->extent[d]);
    }
    const double share = static_cast<double>(longest) / static_cast<double>(end - begin);
    if (share >= finest) continue;
    finest = share;
    dim_ = d;
    longest_ = longest;
  }
  std::sort(entries_.begin(), entries_.end(), [this](const Entry& a, const Entry& b) {
    if (Begin(*a.box) != Begin(*b.box)) return Begin(*a.box) < Begin(*b.box);
    if (!(a.box->offset == b.box->offset)) return a.box->offset < b.box->offset;
    if (a.box->elements() != b.box->elements()) return a.box->elements() > b.box->elements();  // fewer parts
    return a.id < b.id;
  });
}

BoxIndex::Cover BoxIndex::CoverOf(const Box& target) const {
  Cover cover;
  if (target.empty()) return cover;
  std::vector<Box>& rest = cover.holes;  // of the target, not covered so far
  rest.push_back(target);

  const auto first =
      std::lower_bound(entries_.begin(), entries_.end(), Begin(target) - longest_ + 1,
                       [this](const Entry& e, int64_t begin) { return Begin(*e.box) < begin; });
  std::vector<Box> next, taken;
  for (auto e = first; e != entries_.end() && Begin(*e->box) < End(target) && !rest.empty(); ++e) {
    const std::optional<Box> common = Intersect(target, *e->box);
    if (!common) continue;
    next.clear();
    taken.clear();
    int64_t taken_elements = 0;
    for (const Box& piece : rest) {
      const std::optional<Box> region = Intersect(piece, *common);
      if (!region) {
        next.push_back(piece);
        continue;
      }
      taken.push_back(*region);
      taken_elements += region->elements();
      Subtract(piece, *region, &next);
    }
    // One part where nothing was taken before, although `rest` may be cut up there.
    if (taken_elements == common->elements()) taken.assign(1, *common);
    for (const Box& region : taken) cover.parts.push_back({e->id, region});
    rest.swap(next);
  }
  std::sort(rest.begin(), rest.end());
  return cover;
}

std::vector<uint32_t> BoxIndex::Meeting(const Box& target) const {
  std::vector<uint32_t> met;
  if (target.empty()) return met;
  const auto first =
      std::lower_bound(entries_.begin(), entries_.end(), Begin(target) - longest_ + 1,
                       [this](const Entry& e, int64_t begin) { return Begin(*e.box) < begin; });
  for (auto e = first; e != entries_.end() && Begin(*e->box) < End(target); ++e) {
    if (Intersect(target, *e->box)) met.push_back(e->id);
  }
  return met;
}

}  // namespace cairn
