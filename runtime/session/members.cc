#include "runtime/session/members.h"

#include <utility>

#include "runtime/settings.h"

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

Result<TableRooms> Members::Rooms() {
  TableRooms rooms;
  for (int rank = 0; rank < world_size_; ++rank) {
    CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter,
                           links_.mailbox->Take(TableRoom::kType, rank, kBound));
    CAIRN_ASSIGN_OR_RETURN(const TableRoom room, DecodeSessionMessage<TableRoom>(letter.payload));
    for (const auto& [name, rows] : room.rows) rooms[name][static_cast<uint32_t>(rank)] = rows;
  }
  return rooms;
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
  const auto abandon = [&] { links_.broadcast({.kind = Order::kAbandon, .round = round}); };
  for (int ready = 0, over = 0; over < world_size_;) {
    const bool went = ready >= world_size_ && worst.ok();
    auto letter = links_.mailbox->Take(Outcome::kType, -1, went ? standstill_ : bound);
    if (went && letter.status().code() == Code::kTimeout) {
      worst = {Code::kUnavailable, "nothing has moved at any rank for " + FormatDuration(standstill_)};
      abandon();
      continue;
    }
    CAIRN_RETURN_IF_ERROR(letter.status());
    CAIRN_ASSIGN_OR_RETURN(Outcome outcome, DecodeSessionMessage<Outcome>(letter->payload));
    if (!outcome.status.ok() && worst.ok()) abandon();
    if (Weight(outcome.status.code()) > Weight(worst.code()))
      worst = outcome.status.Annotate("rank " + std::to_string(letter->from));
    if (outcome.word == Outcome::kReady && ++ready % world_size_ == 0 && worst.ok())
      links_.broadcast({.kind = Order::kGo, .round = round});
    if (outcome.word != Outcome::kOver) continue;
    ++over;
    outcomes[static_cast<size_t>(letter->from)] = std::move(outcome);
  }
  CAIRN_RETURN_IF_ERROR(worst);
  return outcomes;
}

Result<Outcome> Members::Hear(int rank) {
  CAIRN_ASSIGN_OR_RETURN(const Mailbox::Letter letter, links_.mailbox->Take(Outcome::kType, rank, kBound));
  return DecodeSessionMessage<Outcome>(letter.payload);
}

}  // namespace cairn
