#include "planner/writers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "planner/layout_builder.h"
#include "planner/save_plan.h"
#include "tests/planner/oracle.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<ArraySpec> kMatrix = {{"w", DType::kF32, false, {8, 6}}};

std::vector<Box> BoxesOf(const Writers& writers, uint32_t writer, uint32_t array = 0) {
  std::vector<Box> boxes;
  WriterPieces pieces(writers, writer);
  for (const WriterPiece& piece : pieces.Of(array)) boxes.push_back(piece.box);
  return boxes;
}

TEST(Writers, JoinTheRowsOfTheirRanks) {
  std::vector<Piece> pieces;
  for (uint32_t r = 0; r < 4; ++r) pieces.push_back({0, r, 0, {{2 * r, 0}, {2, 6}}});
  const Layout layout = *FindRules(MakeLayout(4, kMatrix, pieces));
  const auto writers = Writers::Make(layout, {0, 0, 1, 1});
  ASSERT_TRUE(writers.ok()) << writers.status().message();
  EXPECT_THAT(BoxesOf(*writers, 0), ElementsAre(Box{{0, 0}, {4, 6}}));
  EXPECT_THAT(BoxesOf(*writers, 1), ElementsAre(Box{{4, 0}, {4, 6}}));
  EXPECT_EQ(writers->layout().world_size, 2u);
  EXPECT_TRUE(writers->layout().grids.Has(0));
}

TEST(Writers, JoinColumnsAndBothDimensions) {
  // A mesh of 2 x 4: rows by node, columns by rank of the node; and one of 2 x 2 cells all on one writer.
  std::vector<Piece> pieces;
  for (uint32_t r = 0; r < 4; ++r) {
    pieces.push_back({0, r, 0, {{0, r}, {8, r < 3 ? 1 : 3}}});
    pieces.push_back({1, r, 0, {{4 * (r / 2), 3 * (r % 2)}, {4, 3}}});
  }
  const Layout layout =
      MakeLayout(4, {{"w", DType::kF32, false, {8, 6}}, {"v", DType::kF32, false, {8, 6}}}, pieces);
  const auto writers = Writers::Make(layout, {0, 0, 0, 0});
  ASSERT_TRUE(writers.ok()) << writers.status().message();
  EXPECT_THAT(BoxesOf(*writers, 0, 0), ElementsAre(Box{{0, 0}, {8, 6}}));
  EXPECT_THAT(BoxesOf(*writers, 0, 1), ElementsAre(Box{{0, 0}, {8, 6}}));
}

// Ranges of a flattening end in the middle of a row.
TEST(Writers, JoinWhatRangesCutUp) {
  const Layout layout = MakeLayout(2, kMatrix,
                                   {{0, 0, 0, {{0, 0}, {3, 6}}},
                                    {0, 0, 1, {{3, 0}, {1, 2}}},
                                    {0, 1, 0, {{3, 2}, {1, 4}}},
                                    {0, 1, 1, {{4, 0}, {4, 6}}}});
  const auto writers = Writers::Make(layout, {0, 0});
  ASSERT_TRUE(writers.ok()) << writers.status().message();
  EXPECT_THAT(BoxesOf(*writers, 0), ElementsAre(Box{{0, 0}, {8, 6}}));
}

TEST(Writers, KeepApartWhatMakesUpNoBox) {
  const Layout layout = MakeLayout(3, kMatrix,
                                   {{0, 0, 0, {{0, 0}, {4, 3}}},
                                    {0, 1, 0, {{4, 3}, {4, 3}}},
                                    {0, 2, 0, {{0, 3}, {4, 3}}},
                                    {0, 2, 1, {{4, 0}, {4, 3}}}});
  const auto writers = Writers::Make(layout, {0, 0, 1});
  ASSERT_TRUE(writers.ok()) << writers.status().message();
  EXPECT_THAT(BoxesOf(*writers, 0), ElementsAre(Box{{0, 0}, {4, 3}}, Box{{4, 3}, {4, 3}}));
}

TEST(Writers, LeaveARanksPiecesAloneWhereEachIsAWriter) {
  const Layout layout = MakeLayout(1, kMatrix, {{0, 0, 0, {{4, 0}, {4, 6}}}, {0, 0, 1, {{0, 0}, {4, 6}}}});
  const auto writers = Writers::Make(layout);
  ASSERT_TRUE(writers.ok());
  EXPECT_THAT(BoxesOf(*writers, 0), ElementsAre(Box{{4, 0}, {4, 6}}, Box{{0, 0}, {4, 6}}));
  EXPECT_EQ(&writers->layout(), &layout);
}

TEST(Writers, LeaveThePiecesAloneOfARankThatWritesBesideOthers) {
  const Layout layout = MakeLayout(3, kMatrix,
                                   {{0, 0, 0, {{0, 0}, {2, 6}}},
                                    {0, 1, 0, {{2, 0}, {2, 6}}},
                                    {0, 2, 0, {{4, 3}, {4, 3}}},
                                    {0, 2, 1, {{4, 0}, {4, 3}}}});
  const auto writers = Writers::Make(layout, {0, 0, 1});
  ASSERT_TRUE(writers.ok()) << writers.status().message();
  EXPECT_THAT(BoxesOf(*writers, 0), ElementsAre(Box{{0, 0}, {4, 6}}));
  EXPECT_THAT(BoxesOf(*writers, 1), ElementsAre(Box{{4, 3}, {4, 3}}, Box{{4, 0}, {4, 3}}));
}

TEST(Writers, NameAllHoldersOfAPieceOnce) {
  const Layout layout = MakeLayout(
      3, kMatrix, {{0, 0, 0, {{0, 0}, {8, 6}}}, {0, 1, 0, {{0, 0}, {8, 6}}}, {0, 2, 0, {{0, 0}, {8, 6}}}});
  const auto writers = Writers::Make(layout, {0, 1, 0});
  ASSERT_TRUE(writers.ok());
  WriterPieces pieces(*writers, 0);
  ASSERT_EQ(pieces.Of(0).size(), 1u);
  std::vector<uint32_t> ranks;
  for (const auto& holder : pieces.Of(0)[0].parts[0].holders) ranks.push_back(holder.rank);
  EXPECT_THAT(ranks, ElementsAre(0, 2));
}

TEST(Writers, AreNumberedByTheirLowestRanks) {
  const Layout layout = MakeLayout(2, kMatrix, {{0, 0, 0, {{0, 0}, {8, 6}}}});
  for (const std::vector<uint32_t>& wrong : {std::vector<uint32_t>{1, 0}, {0, 2}, {0}, {0, 0, 0}})
    EXPECT_EQ(Writers::Make(layout, wrong).status().code(), Code::kInvalid);
}

// Element by element: each is in one piece of each writer that has a holder of it (more where pieces overlap), and in one part of
// that, whose holders hold it.
TEST(Writers, HoldWhatTheirRanksHold) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto ranks = static_cast<uint32_t>(Uniform(random, 1, 8));
    const Layout listed = WithoutEmptyPieces(RandomLayout(random, RandomArrays(random), ranks));
    std::vector<uint32_t> writer_of;
    uint32_t next = 0;
    for (uint32_t r = 0; r < ranks; ++r) {
      writer_of.push_back(static_cast<uint32_t>(Uniform(random, 0, next)));
      if (writer_of.back() == next) ++next;
    }
    const auto ruled = FindRules(listed);
    ASSERT_TRUE(ruled.ok()) << ruled.status().message();
    for (const Layout* layout : {&listed, &*ruled}) {
      const auto writers = Writers::Make(*layout, writer_of);
      ASSERT_TRUE(writers.ok()) << writers.status().message();
      ASSERT_TRUE(ValidateLayout(writers->layout()).ok());
      for (uint32_t writer = 0; writer < next; ++writer) {
        WriterPieces pieces(*writers, writer);
        for (uint32_t a = 0; a < listed.arrays.size(); ++a) {
          const Dims& shape = listed.arrays[a].shape;
          std::set<int64_t> held, expected;
          for (const WriterPiece& piece : pieces.Of(a)) {
            std::set<int64_t> in_parts;
            for (const WriterPiece::Part& part : piece.parts) {
              ForEachElement(part.box, [&](const Dims& at) {
                EXPECT_TRUE(in_parts.insert(FlatIndex(shape, at)).second) << "two parts of a piece overlap";
              });
              for (const auto& holder : part.holders) {
                EXPECT_EQ(writer_of[holder.rank], writer);
                EXPECT_TRUE(std::any_of(listed.pieces.begin(), listed.pieces.end(), [&](const Piece& p) {
                  return p.array == a && p.rank == holder.rank && p.ordinal == holder.ordinal &&
                         p.box == part.box;
                }));
              }
            }
            std::set<int64_t> in_box;
            ForEachElement(piece.box, [&](const Dims& at) { in_box.insert(FlatIndex(shape, at)); });
            EXPECT_EQ(in_box, in_parts);
            held.merge(in_box);
          }
          for (const Piece& p : listed.pieces) {
            if (p.array == a && writer_of[p.rank] == writer)
              ForEachElement(p.box, [&](const Dims& at) { expected.insert(FlatIndex(shape, at)); });
          }
          EXPECT_EQ(held, expected);
        }
      }
    }
  }
}

TEST(RowsOfHolder, DealOutAllRowsOnce) {
  for (const uint64_t min_split : {0, 100, 1000}) {
    for (uint64_t holders = 1; holders < 6; ++holders) {
      for (const int64_t rows : {1, 3, 17}) {
        for (uint64_t turn = 0; turn < 7; ++turn) {
          std::vector<int> taken(static_cast<size_t>(rows));
          uint64_t takers = 0;
          for (uint64_t h = 0; h < holders; ++h) {
            const CopiedRows part =
                RowsOfHolder(h, holders, turn, rows, static_cast<uint64_t>(rows) * 40, min_split);
            takers += part.count > 0;
            for (int64_t row = part.first; row < part.first + part.count; ++row)
              ++taken[static_cast<size_t>(row)];
          }
          EXPECT_EQ(taken, std::vector<int>(static_cast<size_t>(rows), 1));
          const uint64_t most = min_split == 0     ? std::min<uint64_t>(holders, static_cast<uint64_t>(rows))
                                : min_split == 100 ? std::min<uint64_t>(holders, rows == 17 ? 6 : 1)
                                                   : 1;
          EXPECT_EQ(takers, most) << holders << " holders, " << rows << " rows";
        }
      }
    }
  }
  // Who begins goes round.
  EXPECT_EQ(RowsOfHolder(0, 3, 0, 1, 8, 100).count, 1);
  EXPECT_EQ(RowsOfHolder(1, 3, 1, 1, 8, 100).count, 1);
  EXPECT_EQ(RowsOfHolder(2, 3, 2, 1, 8, 100).count, 1);
}

TEST(ShareOutFiles, HasOneForEachNodeAtLeast) {
  const std::vector<std::string> nodes = {"a", "a", "b", "b", "c", "c"};
  EXPECT_THAT(ShareOutFiles(nodes, 1), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(ShareOutFiles(nodes, 3), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(ShareOutFiles(nodes, 4), ElementsAre(0, 0, 1, 1, 2, 3));
  EXPECT_THAT(ShareOutFiles(nodes, 6), IsEmpty());
  EXPECT_THAT(ShareOutFiles(nodes, 100), IsEmpty());
}

TEST(ShareOutFiles, KeepsRanksOfANodeTogetherHoweverTheyAreNumbered) {
  EXPECT_THAT(ShareOutFiles(std::vector<std::string>{"a", "b", "a", "b"}, 1), ElementsAre(0, 1, 0, 1));
  const std::vector<std::string> one(5, "a");
  EXPECT_THAT(ShareOutFiles(one, 2), ElementsAre(0, 0, 0, 1, 1));
  EXPECT_THAT(ShareOutFiles(one, 3), ElementsAre(0, 0, 1, 1, 2));
}

}  // namespace
}  // namespace cairn
