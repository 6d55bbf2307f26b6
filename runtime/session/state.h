// State: what all members registered, merged: the global layout and the blobs. Travels from every member to the leader (one member's share)
// and back to all (the whole), as CBOR. Pure.
#ifndef CAIRN_RUNTIME_SESSION_STATE_H_
#define CAIRN_RUNTIME_SESSION_STATE_H_

#include <span>
#include <string>
#include <vector>

#include "planner/layout.h"
#include "runtime/session/items.h"

namespace cairn {

struct BlobSpec {
  std::string name;
  int policy = CAIRN_BLOB_REFUSE;
  friend bool operator==(const BlobSpec&, const BlobSpec&) = default;
};

struct State {
  Layout layout;
  std::vector<BlobSpec> blobs;
};

// One member's share: what it registered, without addresses.
std::string EncodeShare(const Items& items);

// Merges the shares of ranks 0 … n−1. kInvalid naming the item and the ranks that disagree (dtype, shape, order, policy, or an item that
// not all have), or the array and its first hole when the pieces do not cover it. Arrays stand in rank 0's order.
Result<State> MergeShares(std::span<const std::string> shares);

std::string EncodeState(const State& state);
Result<State> DecodeState(std::string_view bytes);

// What differs between a checkpoint and the program, one line each ("u: saved [64, 64] F64, registered [64, 128] F64"); empty = they match.
std::vector<std::string> CompareItems(const std::vector<ArraySpec>& saved,
                                      const std::vector<BlobSpec>& saved_blobs, const State& now);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_STATE_H_
