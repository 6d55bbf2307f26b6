#include "planner/layout_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "planner/layout_builder.h"
#include "tests/planner/random_layout.h"

namespace cairn {
namespace {

// Against a look at every piece.
TEST(LayoutIndex, NamesThePiecesOfARankAndTheHoldersOfABox) {
  for (uint64_t seed = 1; seed <= Cases(500); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::vector<ArraySpec> arrays = RandomArrays(random);
    const Layout layout =
        WithoutEmptyPieces(RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 9))));
    const Result<Layout> ruled = FindRules(layout);
    ASSERT_TRUE(ruled.ok()) << ruled.status().message();
    const LayoutIndex index(*ruled);

    for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
      std::vector<Piece> expected;
      for (const Piece& p : layout.pieces) {
        if (p.rank == rank) expected.push_back(p);
      }
      const std::vector<Piece> pieces = index.PiecesOf(rank);
      ASSERT_EQ(pieces.size(), expected.size());
      for (size_t i = 0; i < pieces.size(); ++i) {
        EXPECT_EQ(pieces[i].array, expected[i].array);
        EXPECT_EQ(pieces[i].ordinal, expected[i].ordinal);
        EXPECT_EQ(pieces[i].box, expected[i].box);
      }
    }
    for (uint32_t a = 0; a < arrays.size(); ++a) {
      const Box box = RandomBox(random, arrays[a].shape);
      std::vector<Piece> expected;
      for (const Piece& p : layout.pieces) {
        if (p.array == a && Intersect(p.box, box)) expected.push_back(p);
      }
      std::map<std::pair<uint32_t, uint32_t>, std::pair<Box, Box>> holders;  // by rank and ordinal
      for (const Holding& holding : index.HoldersOf(a, box)) {
        EXPECT_TRUE(std::is_sorted(holding.ranks->begin(), holding.ranks->end()));
        for (const uint32_t rank : *holding.ranks) {
          EXPECT_TRUE(holders.try_emplace({rank, holding.ordinal}, holding.box, holding.region).second);
        }
      }
      ASSERT_EQ(holders.size(), expected.size());
      for (const Piece& piece : expected) {
        EXPECT_EQ((holders[{piece.rank, piece.ordinal}]), std::pair(piece.box, *Intersect(piece.box, box)));
      }
    }
  }
}

}  // namespace
}  // namespace cairn
