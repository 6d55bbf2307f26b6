#include "runtime/session/tables.h"

#include <algorithm>

#include "runtime/formats/little_endian.h"

namespace cairn {

std::string EncodeTableMark(const RowRun& run) {
  std::string out;
  AppendLittleEndian(out, static_cast<uint64_t>(run.first));
  AppendLittleEndian(out, static_cast<uint64_t>(run.count));
  return out;
}

Result<std::vector<RowRun>> DecodeTableMarks(const std::vector<std::string>& marks, int64_t rows) {
  std::vector<RowRun> runs;
  for (size_t member = 0; member < marks.size(); ++member) {
    const std::string& mark = marks[member];
    const uint64_t first = mark.size() == kTableMarkBytes ? LittleEndianAt<uint64_t>(mark, 0) : UINT64_MAX;
    const uint64_t count = mark.size() == kTableMarkBytes ? LittleEndianAt<uint64_t>(mark, 8) : 0;
    const auto all = static_cast<uint64_t>(rows);
    if (first > all || count > all - first) {
      return Status(Code::kDamage, "what it says of the rows of rank " + std::to_string(member) +
                                       " does not fit its " + std::to_string(rows) + " rows");
    }
    runs.push_back({static_cast<int64_t>(first), static_cast<int64_t>(count)});
  }
  return runs;
}

std::vector<std::vector<RowRun>> DealEvenly(const std::vector<RowRun>& runs, uint32_t world_size) {
  int64_t total = 0;
  for (const RowRun& run : runs) total += run.count;
  std::vector<std::vector<RowRun>> shares(world_size);
  auto run = runs.begin();
  int64_t used = 0;  // rows of *run
  for (uint32_t member = 0; member < world_size; ++member) {
    int64_t due = total / world_size + (member < total % world_size ? 1 : 0);
    while (due > 0) {
      const int64_t count = std::min(due, run->count - used);
      if (count > 0) shares[member].push_back({run->first + used, count});
      due -= count;
      used += count;
      if (used == run->count) {
        ++run;
        used = 0;
      }
    }
  }
  return shares;
}

}  // namespace cairn
