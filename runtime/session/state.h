// State: what all members registered, merged: the global layout and the blobs. Travels from every member to the leader (one member's share)
// and back to all (the whole), as CBOR. Pure.
#ifndef CAIRN_RUNTIME_SESSION_STATE_H_
#define CAIRN_RUNTIME_SESSION_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/layout.h"
#include "planner/layout_builder.h"
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
  std::set<std::string> tables;     // of the arrays, whose dimension 0 is whatever the members had room for
  std::vector<uint32_t> writer_of;  // who writes files together (planner/writers.h); the leader decides
};

// Of tables, by rank: the rows for which the rank has room. All that a restore can change of a state.
using TableRooms = std::map<std::string, std::map<uint32_t, int64_t>>;

// Lays the tables out with these rooms, and those that are not named as they are. kInternal: there is no such table or rank; kInvalid: the layout
// would be none.
Status SetRooms(const TableRooms& rooms, State* state);

// The tables of a member that have room for other numbers of rows than the state says of its rank, and for how many.
std::map<std::string, int64_t> RoomsThatChanged(const Items& items, const State& state, int rank);

// One member's share: what it registered, without addresses. Arrays with equal pieces name one list of boxes.
std::string EncodeShare(const Items& items);

// Merges the shares of ranks 0, 1, 2, … as they come, keeping only what differs between them. Arrays stand in rank 0's order, those that it
// lacks behind them, then tables by name, each rank's rows behind those of the rank before.
class ShareMerger {
 public:
  // The share of the next rank. kInvalid naming the item and the ranks that disagree (dtype, shape, order, policy, or an item that not all
  // have, unless it is an optional array; an output that several have). After an error the merger is of no more use.
  Status Add(std::string_view share);
  // kInvalid naming the array and its first hole when the pieces do not cover it.
  Result<State> Finish() &&;

 private:
  Status Begin(const std::string& items);
  Status Match(const std::string& items, size_t rank, std::vector<uint32_t>* list_of,
               std::vector<std::vector<Box>>* lists);

  size_t ranks_ = 0;
  std::string items_;  // of rank 0, encoded
  std::vector<ArraySpec> arrays_;
  std::vector<bool> optional_;                // by array
  std::map<std::string, uint32_t> position_;  // in arrays_
  std::vector<BlobSpec> blobs_;
  std::map<std::string, int64_t> row_bytes_;  // of tables
  TableRooms rooms_;
  std::map<std::string, size_t> owner_of_;  // rank, by path of an output
  std::optional<LayoutBuilder> builder_;
};

std::string EncodeState(const State& state);
Result<State> DecodeState(std::string_view bytes);

// For people: "[64, 128] F64", with the dimensions as the program counts them.
std::string DescribeArray(const ArraySpec& spec);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_STATE_H_
