#include "planner/hops.h"

#include "planner/exchange_plan.h"

namespace cairn {

Hops HopsOf(const RankSet& members, uint32_t reader, uint32_t self) {
  const size_t first = members.CountBelow(reader + 1);  // where the ring begins
  const size_t count = members.size() - (members.Has(reader) ? 1 : 0);
  const auto at = [&](size_t position) { return members.At((first + position) % members.size()); };
  Hops hops{reader, {}};
  const auto send = [&](size_t position) {
    if (position < count) hops.to.push_back(at(position));
  };
  if (self == reader) {
    send(0);
    return hops;
  }
  const size_t position = (members.CountBelow(self) + members.size() - first) % members.size();
  constexpr size_t kChain = ExchangePlan::kChain;
  const size_t chain = position / kChain;
  if (position % kChain == 0) {  // these have the longer way before them
    if (chain > 0) hops.from = at((chain - 1) / 2 * kChain);
    send((2 * chain + 1) * kChain);
    send((2 * chain + 2) * kChain);
  } else {
    hops.from = at(position - 1);
  }
  if ((position + 1) % kChain != 0) send(position + 1);
  return hops;
}

}  // namespace cairn
