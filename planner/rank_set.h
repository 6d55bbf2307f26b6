// RankSet: ranks, told by how they differ from a list that is there anyway. Thousands of replicas of which one or two want something else besides
// are a set that costs no more than those two.
#ifndef CAIRN_PLANNER_RANK_SET_H_
#define CAIRN_PLANNER_RANK_SET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn {

using Ranks = std::vector<uint32_t>;  // increasing, each once

bool Has(const Ranks& ranks, uint32_t rank);

class RankSet {
 public:
  explicit RankSet(Ranks ranks);
  // `base`, which outlives the set, without some of its ranks and with others that it does not have.
  RankSet(const Ranks& base, Ranks without, Ranks with = {});

  size_t size() const { return base_->size() - without_.size() + with_.size(); }
  bool Has(uint32_t rank) const;
  size_t CountBelow(uint32_t rank) const;
  uint32_t At(size_t position) const;  // by rank; position < size()

 private:
  const Ranks* base_;
  Ranks without_, with_;
};

}  // namespace cairn

#endif  // CAIRN_PLANNER_RANK_SET_H_
