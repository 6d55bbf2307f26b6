// ChooseWay: how the ranks hand each other what they read in a restore. All must do the same, so the leader says which, once it knows what each can. Pure.
#ifndef CAIRN_RUNTIME_SESSION_EXCHANGE_WAY_H_
#define CAIRN_RUNTIME_SESSION_EXCHANGE_WAY_H_

#include <string>
#include <vector>

#include "runtime/session/protocol.h"
#include "runtime/settings.h"

namespace cairn {

struct ExchangeWay {
  Order::Way way = Order::kSockets;
  std::string why_not_mpi;  // for the user, where somebody would have expected it; "" = nothing is to be said
  bool asked_for_it = false;  // the user has
};

// `inventories`: by rank.
ExchangeWay ChooseWay(ExchangeBy setting, const std::vector<Inventory>& inventories);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_EXCHANGE_WAY_H_
