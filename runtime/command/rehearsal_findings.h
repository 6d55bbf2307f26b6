// RehearsalFindings: how the state of a run that was resumed differs from that of the same run undisturbed, at the same step.
//
//   arrays  by name and element, whatever the numbers of ranks
//   values  by name. A program that keeps many values in one blob says what they mean in a merged blob "rehearsal.values" (hooks/python/cairn/torch/
//           rehearsal.py): lines NAME=VALUE, of each rank those that it has. Names and values must not depend on the number of ranks
//   blobs   byte for byte, rank by rank: each rank's own, so with as many ranks alone
#ifndef CAIRN_RUNTIME_COMMAND_REHEARSAL_FINDINGS_H_
#define CAIRN_RUNTIME_COMMAND_REHEARSAL_FINDINGS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/command/state.h"
#include "runtime/interop/diff.h"

namespace cairn {

struct BlobDiff {
  std::string name;
  std::vector<std::string> ranks;  // on which it differs
  std::string only;                // "undisturbed", "resumed": the one run that has it
};

struct ValueDiff {
  std::string name;
  std::string undisturbed, resumed;  // "" = that run has none; where ranks have several, joined by " and "
};

struct RehearsalFindings {
  uint32_t ranks[2] = {};         // of the undisturbed run, and of the resumed one
  std::vector<ArrayDiff> arrays;  // equal ones, too
  std::vector<ValueDiff> values;
  std::vector<BlobDiff> blobs;
  bool equal = true;
};

// tolerance: relative, of arrays' elements and of values that are numbers.
Result<RehearsalFindings> CompareRehearsal(CheckpointSource& undisturbed, CheckpointSource& resumed,
                                           double tolerance);

// On stdout.
void PrintFindings(const RehearsalFindings& found);

// The fields ranks, equal, arrays, values and blobs.
nlohmann::ordered_json FindingsJson(const RehearsalFindings& found);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_REHEARSAL_FINDINGS_H_
