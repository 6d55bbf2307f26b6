#include "runtime/session/members.h"

#include <utility>

namespace cairn {
namespace {

int Weight(Code code) {
  switch (code) {
    case Code::kOk:
      return 0;
    case Code::kCancelled:
      return 1;
    case Code::kUnavailable:
      return 2;
    case Code::kDamage:
      return 3;
    default:
      return 4;
  }
}

}  // namespace

Result<std::vector<Inventory>> Members::Inventories() {
  std::vector<Inventory> inventories;
  for (int rank = 0; rank < world_size_; ++rank) {
    CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter,
                           links_.mailbox->Take(Inventory::kType, rank, kBound));
    CAIRN_ASSIGN_OR_RETURN(Inventory inventory, DecodeSessionMessage<Inventory>(letter.payload));
    inventories.push_back(std::move(inventory));
  }
  return inventories;
}

Result<State> Members::Shares() {
  ShareMerger merger;
  for (int rank = 0; rank < world_size_; ++rank) {
    CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter, links_.mailbox->Take(kShareMessage, rank, kBound));
    CAIRN_RETURN_IF_ERROR(merger.Add(letter.payload));
  }
  return std::move(merger).Finish();
}

Result<std::vector<Outcome>> Members::Ask(const std::function<Order(int rank)>& order_for,
                                          std::chrono::milliseconds bound) {
  const uint32_t round = ++rounds_;
  for (int rank = 0; rank < world_size_; ++rank) {
    Order order = order_for(rank);
    order.round = round;
    links_.send(rank, order);
  }
  std::vector<Outcome> outcomes(static_cast<size_t>(world_size_));
  Status worst;
  for (int n = 0; n < world_size_; ++n) {
    CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter, links_.mailbox->Take(Outcome::kType, -1, bound));
    CAIRN_ASSIGN_OR_RETURN(Outcome outcome, DecodeSessionMessage<Outcome>(letter.payload));
    if (!outcome.status.ok() && worst.ok()) links_.broadcast({.kind = Order::kAbandon, .round = round});
    if (Weight(outcome.status.code()) > Weight(worst.code()))
      worst = outcome.status.Annotate("rank " + std::to_string(letter.from));
    outcomes[static_cast<size_t>(letter.from)] = std::move(outcome);
  }
  CAIRN_RETURN_IF_ERROR(worst);
  return outcomes;
}

Result<Outcome> Members::Hear(int rank) {
  CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter, links_.mailbox->Take(Outcome::kType, rank, kBound));
  return DecodeSessionMessage<Outcome>(letter.payload);
}

}  // namespace cairn
