// Members: how the leader of a restore asks the members and hears them. Every function blocks, and ends with the mailbox's reason when a
// member has gone. One thread (the clerk).
//
// A round, in which all do one thing at the same time (Ask):
//   1. Each member gets its order, which carries the round's number.
//   2. Where the members do what none may begin before all can, each says when it is ready (Outcome::kReady), any number of times. When all are, all are told to go.
//   3. Each reports an outcome, whatever comes.
//   4. On the first word of one that is not good all are told to abandon the round; who is still at it ends and reports all the same. So no
//      member is at a round when the next one begins.
//      So they are when all went and then nobody has said for kStandstill that something moves (Outcome::kMoving).
//   5. The worst outcome is the round's: a mismatch or a fault that proves nothing most, then damage. Least: that the exchange between members
//      failed, which it does on many when one ends early for another reason, and that a member gave up since another one had.
#ifndef CAIRN_RUNTIME_SESSION_MEMBERS_H_
#define CAIRN_RUNTIME_SESSION_MEMBERS_H_

#include <chrono>
#include <functional>
#include <vector>

#include "runtime/session/mailbox.h"
#include "runtime/session/protocol.h"
#include "runtime/session/state.h"

namespace cairn {

class Members {
 public:
  struct Links {
    Mailbox* mailbox = nullptr;
    std::function<void(int rank, const Order& order)> send;
    std::function<void(const Order& order)> broadcast;
  };

  // Members may come to cairn_restore far apart: one reads a mesh, another waits for it.
  static constexpr std::chrono::minutes kBound{30};
  static constexpr std::chrono::minutes kStandstill{10};

  Members(int world_size, Links links, std::chrono::milliseconds standstill = kStandstill)
      : world_size_(world_size), links_(std::move(links)), standstill_(standstill) {}

  // What each found on its node, by rank; what all have registered, merged.
  Result<std::vector<Inventory>> Inventories();
  Result<State> Shares();
  // After kAskRoom: what has changed of the rooms of tables.
  Result<TableRooms> Rooms();

  void Tell(int rank, const Order& order) { links_.send(rank, order); }
  void TellAll(const Order& order) { links_.broadcast(order); }

  // A round. By rank. kTimeout: nobody said anything for `bound`.
  Result<std::vector<Outcome>> Ask(const std::function<Order(int rank)>& order_for,
                                   std::chrono::milliseconds bound);

  // What `rank` reports next, good or not.
  Result<Outcome> Hear(int rank);

 private:
  const int world_size_;
  const Links links_;
  const std::chrono::milliseconds standstill_;
  uint32_t rounds_ = 0;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_MEMBERS_H_
