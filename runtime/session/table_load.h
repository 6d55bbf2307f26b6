// TableLoad: one table of a load, from what the checkpoint says of its rows to the program's memory.
//
//   1. All rows that count are split evenly over the members: each one's share is a few stretches of the saved array, which all know of all.
//   2. A share is read like any other pieces, its stretches one behind the other: into the program's memory, or, where rows have owners, into
//      memory of its own.
//   3. Rows that have owners go to them (restore/row_shuffle.h), and from there into the program's memory.
// A program that has not room enough is asked for more before it is written to.
#ifndef CAIRN_RUNTIME_SESSION_TABLE_LOAD_H_
#define CAIRN_RUNTIME_SESSION_TABLE_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/restore/carried_round.h"
#include "runtime/restore/exchange.h"
#include "runtime/session/items.h"
#include "runtime/session/tables.h"

namespace cairn {

class TableLoad {
 public:
  // The table-th of `items`, which outlive this. `marks`: of the members of the life that saved. kDamage when they do not fit `saved`; what
  // Items::MakeRoom says.
  static Result<TableLoad> Make(Items& items, size_t table, const std::vector<std::string>& marks,
                                const ArraySpec& saved, uint32_t rank, uint32_t world_size);

  // Pieces of the saved array, by rank, then by ordinal.
  std::vector<Piece> PiecesOfAll(uint32_t array) const;

  // Where the next of this rank's pieces goes; once for each, in their order.
  Destination Place(const Piece& piece);

  // Once all is read. `carried`: what rows go over to their owners; nullptr: sockets. kInvalid when the program names an owner that there is not.
  Status Finish(const ExchangeLinks& links, const CarriedRound* carried);

 private:
  TableLoad(Items& items, size_t table) : items_(&items), table_(table) {}
  const RegisteredTable& table() const { return items_->tables()[table_]; }
  std::byte* memory() const { return items_->arrays()[table().array].pieces[0].data; }

  Items* items_;
  size_t table_;
  uint32_t world_size_ = 0;
  std::vector<std::vector<RowRun>> shares_;  // by rank
  int64_t rows_ = 0;                         // of this rank's share
  int64_t placed_ = 0;                       // of them
  std::vector<std::byte> share_;             // where rows have owners
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_TABLE_LOAD_H_
