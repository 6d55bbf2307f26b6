// FourRanks: a small layout with one array of each kind.
#ifndef CAIRN_TESTS_RUNTIME_RESTORE_FOUR_RANKS_H_
#define CAIRN_TESTS_RUNTIME_RESTORE_FOUR_RANKS_H_

#include <gtest/gtest.h>

#include "planner/flat_range.h"
#include "planner/layout_builder.h"
#include "tests/planner/random_layout.h"

namespace cairn {

// Four ranks: columns, replicas of halves of the rows, blocks dealt out in turns, flat ranges, a scalar on all.
inline Layout FourRanks() {
  const std::vector<ArraySpec> arrays = {{"model.columns", DType::kF32, false, {6, 10}},
                                         {"model.halves", DType::kBF16, false, {9, 4}},
                                         {"model.turns", DType::kI64, false, {16}},
                                         {"optim.flat", DType::kF64, false, {5, 7}},
                                         {"step", DType::kI32, false, {1}},
                                         {"mask", DType::kU8, false, {3, 3, 4}}};
  std::vector<Piece> pieces;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const int64_t r = rank;
    pieces.push_back({0, rank, 0, {{0, r * 3}, {6, r == 3 ? 1 : 3}}});
    pieces.push_back({1, rank, 0, {{r / 2 * 5, 0}, {r < 2 ? 5 : 4, 4}}});
    for (int64_t turn = 0; turn < 2; ++turn) pieces.push_back({2, rank, 0, {{(turn * 4 + r) * 2}, {2}}});
    for (const Box& box : CutFlatRange({5, 7}, r * 9, r == 3 ? 8 : 9)) pieces.push_back({3, rank, 0, box});
    pieces.push_back({4, rank, 0, Box::Whole({1})});
    pieces.push_back({5, rank, 0, Box::Whole({3, 3, 4})});
  }
  auto layout = FindRules(MakeLayout(4, arrays, pieces));
  EXPECT_TRUE(layout.ok()) << layout.status().message();
  return *layout;
}

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_RESTORE_FOUR_RANKS_H_
