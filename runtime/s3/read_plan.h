// ReadPlan: which requests fetch the ranges that somebody wants of an object.
//
// Pure; any thread.
#ifndef CAIRN_RUNTIME_S3_READ_PLAN_H_
#define CAIRN_RUNTIME_S3_READ_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/io/object_store.h"
#include "runtime/s3/http.h"

namespace cairn {

// One request for bytes [offset, offset + bytes), which is above 0, and where they go.
struct PlannedRead {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::vector<HttpPiece> into;
};

// Ranges that lie at most `gap` apart share a request, and what is between them is read and dropped; none asks for more than `longest` bytes.
// In the order of the offsets. Empty ranges ask for nothing; overlapping ones are read once for each.
std::vector<PlannedRead> PlanReads(std::span<const ObjectRange> ranges, uint64_t gap, uint64_t longest);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_READ_PLAN_H_
