// Random layouts for property tests: arrays of 0 to 4 dimensions over any number of ranks. One array is cut up unevenly,
// replicated, overlapping, with empty pieces; the next by a mesh of ranks, evenly or not, with replicas, block-cyclic;
// the next into flat ranges.
#ifndef CAIRN_TESTS_PLANNER_RANDOM_LAYOUT_H_
#define CAIRN_TESTS_PLANNER_RANDOM_LAYOUT_H_

#include <random>
#include <vector>

#include "planner/layout.h"

namespace cairn {

using Random = std::mt19937_64;

// How many random cases a test tries: those of a sanitizer's build, which takes ten times as long, look for other faults.
#ifdef CAIRN_SANITIZED
constexpr uint64_t Cases(uint64_t count) { return count / 10; }
#else
constexpr uint64_t Cases(uint64_t count) { return count; }
#endif

int64_t Uniform(Random& random, int64_t low, int64_t high);  // both included

Box RandomBox(Random& random, const Dims& shape);  // inside; may be empty

std::vector<ArraySpec> RandomArrays(Random& random);

// A valid layout of these arrays, all pieces listed.
Layout RandomLayout(Random& random, const std::vector<ArraySpec>& arrays, uint32_t world_size);

// The same without empty pieces: what FindRules keeps.
Layout WithoutEmptyPieces(const Layout& layout);

// Makes a layout from pieces in any order; ordinals are given by the order in which a rank's pieces of an
// array stand.
Layout MakeLayout(uint32_t world_size, std::vector<ArraySpec> arrays, std::vector<Piece> pieces);

}  // namespace cairn

#endif  // CAIRN_TESTS_PLANNER_RANDOM_LAYOUT_H_
