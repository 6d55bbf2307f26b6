// What a comparison of arrays (runtime/interop/diff.h) found: for people, and as JSON.
#ifndef CAIRN_RUNTIME_COMMAND_DIFF_TABLE_H_
#define CAIRN_RUNTIME_COMMAND_DIFF_TABLE_H_

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "runtime/interop/diff.h"

namespace cairn {

nlohmann::ordered_json DiffJson(const ArrayDiff& diff);

// On stdout: a table of those that differ, or of `all`, and how many are equal.
void PrintDiffs(const std::vector<ArrayDiff>& diffs, bool all);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_DIFF_TABLE_H_
