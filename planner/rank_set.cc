#include "planner/rank_set.h"

#include <algorithm>
#include <utility>

namespace cairn {
namespace {

const Ranks kNobody;

size_t Below(const Ranks& ranks, uint32_t rank) {
  return static_cast<size_t>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

}  // namespace

bool Has(const Ranks& ranks, uint32_t rank) { return std::binary_search(ranks.begin(), ranks.end(), rank); }

RankSet::RankSet(Ranks ranks) : base_(&kNobody), with_(std::move(ranks)) {}

RankSet::RankSet(const Ranks& base, Ranks without, Ranks with)
    : base_(&base), without_(std::move(without)), with_(std::move(with)) {}

bool RankSet::Has(uint32_t rank) const {
  return cairn::Has(with_, rank) || (cairn::Has(*base_, rank) && !cairn::Has(without_, rank));
}

size_t RankSet::CountBelow(uint32_t rank) const {
  return Below(*base_, rank) - Below(without_, rank) + Below(with_, rank);
}

uint32_t RankSet::At(size_t position) const {
  if (base_->empty()) return with_[position];
  if (without_.empty() && with_.empty()) return (*base_)[position];
  uint32_t low = 0,
           high = std::max(base_->back(), with_.empty() ? 0 : with_.back());  // the member is one of these
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (CountBelow(middle + 1) > position) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace cairn
