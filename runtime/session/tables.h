// Tables on disk, and how their rows are dealt out to another number of members. Pure.
//
// A table is saved as an array U8 [rows of all members that fit, bytes of a row], split by rows among the members, and a blob
// "<name>.rows" of each member, which says which rows of it count (TableMark). What lies behind them is of no meaning.
#ifndef CAIRN_RUNTIME_SESSION_TABLES_H_
#define CAIRN_RUNTIME_SESSION_TABLES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

inline std::string TableRowsName(std::string_view table) { return std::string(table) + ".rows"; }

// 16 bytes, little-endian: u64 first row of the member's part, u64 rows that count.
inline constexpr size_t kTableMarkBytes = 16;
struct RowRun {
  int64_t first = 0, count = 0;
  friend bool operator==(const RowRun&, const RowRun&) = default;
};
std::string EncodeTableMark(const RowRun& run);

// What counts, by member of the life that saved. kDamage: marks that lie outside of the array's `rows`.
Result<std::vector<RowRun>> DecodeTableMarks(const std::vector<std::string>& marks, int64_t rows);

// By member: where its share lies when all rows that count, one after the other, are split evenly; the first members get the odd ones.
std::vector<std::vector<RowRun>> DealEvenly(const std::vector<RowRun>& runs, uint32_t world_size);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_TABLES_H_
