// Diff: compares the arrays of two sources, element by element, whatever the layout of either.
#ifndef CAIRN_RUNTIME_INTEROP_DIFF_H_
#define CAIRN_RUNTIME_INTEROP_DIFF_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planner/base/dtype.h"
#include "planner/base/status.h"
#include "runtime/interop/array_source.h"

namespace cairn {

// Elements are equal when their bits are. A complex number counts as two, as does each value of those that share bytes.
struct Difference {
  uint64_t differing = 0;   // elements
  uint64_t not_finite = 0;  // differing elements of which one or both are NaN or infinite
  double max_abs = 0;       // greatest |a - b| of finite elements
  double max_rel = 0;       // greatest |a - b| / max(|a|, |b|) of finite elements; at most 2
};

// Pure. Adds what two dense stretches of one type say; both have the same size.
void Compare(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b, Difference* difference);

struct ArrayDiff {
  enum class Kind { kEqual, kDiffers, kOtherForm, kOnlyInA, kOnlyInB };
  Kind kind = Kind::kEqual;
  std::string name;
  DType dtype = DType::kF32;  // of A, or of B where A has no such array
  Dims shape;                 // likewise; as it is stored
  Difference difference;      // of kDiffers
  std::string forms;          // of kOtherForm: "F32 [4, 8] and F64 [4, 8]"
};

// In the order of A, then what only B has.
Result<std::vector<ArrayDiff>> Diff(ArraySource& a, ArraySource& b, const Progress& progress);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_DIFF_H_
