#include "planner/mesh_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/layout_index.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;

std::vector<Box> BoxesOf(const Layout& layout, uint32_t rank) {
  std::vector<Box> boxes;
  for (const Piece& piece : LayoutIndex(layout).PiecesOf(rank)) boxes.push_back(piece.box);
  return boxes;
}

TEST(MeshLayout, DividesDimensionsByAxesAndRepeatsAlongTheOthers) {
  MeshLayout mesh(12);
  const ArraySpec array{"w", DType::kF32, false, {7, 6}};
  mesh.Add(array, 0, std::vector<MeshAxis>{{2, -1}, {3, 1}, {2, 0}});
  const Layout layout = std::move(mesh).Finish();
  ASSERT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout).message();
  EXPECT_TRUE(layout.pieces.empty()) << "a rule says it";
  // rank = 6 replica + 2 column + row
  EXPECT_THAT(BoxesOf(layout, 0), ElementsAre(Box{{0, 0}, {4, 2}}));
  EXPECT_THAT(BoxesOf(layout, 1), ElementsAre(Box{{4, 0}, {3, 2}}));
  EXPECT_THAT(BoxesOf(layout, 4), ElementsAre(Box{{0, 4}, {4, 2}}));
  EXPECT_THAT(BoxesOf(layout, 7), ElementsAre(Box{{4, 0}, {3, 2}}));
}

TEST(MeshLayout, DividesOneDimensionByTwoAxesTheFirstCoarsest) {
  MeshLayout mesh(4);
  mesh.Add({"w", DType::kF32, false, {8, 4}}, 0, std::vector<MeshAxis>{{2, 0}, {2, 0}});
  const Layout layout = std::move(mesh).Finish();
  ASSERT_TRUE(ValidateLayout(layout).ok());
  for (uint32_t rank = 0; rank < 4; ++rank)
    EXPECT_THAT(BoxesOf(layout, rank), ElementsAre(Box{{2 * rank, 0}, {2, 4}}));
}

TEST(MeshLayout, GivesNothingToRanksWhosePartIsEmpty) {
  MeshLayout mesh(6);
  mesh.Add({"w", DType::kF32, false, {2, 3}}, 0, std::vector<MeshAxis>{{3, 0}, {2, 1}});
  const Layout layout = std::move(mesh).Finish();
  ASSERT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout).message();
  EXPECT_THAT(BoxesOf(layout, 0), ElementsAre(Box{{0, 0}, {1, 2}}));
  EXPECT_THAT(BoxesOf(layout, 3), ElementsAre(Box{{1, 2}, {1, 1}}));
  EXPECT_THAT(BoxesOf(layout, 4), ElementsAre());
}

TEST(MeshLayout, DealsOutEqualStretches) {
  MeshLayout mesh(3);
  mesh.AddFlat({"w", DType::kF32, false, {2, 5}});
  const Layout layout = std::move(mesh).Finish();
  ASSERT_TRUE(ValidateLayout(layout).ok());
  EXPECT_THAT(BoxesOf(layout, 0), ElementsAre(Box{{0, 0}, {1, 4}}));
  EXPECT_THAT(BoxesOf(layout, 1), ElementsAre(Box{{0, 4}, {1, 1}}, Box{{1, 0}, {1, 2}}));
  EXPECT_THAT(BoxesOf(layout, 2), ElementsAre(Box{{1, 2}, {1, 3}}));
}

// What an array of 24 × 24 that was saved on this mesh becomes on so many ranks.
Layout Resized(const std::vector<MeshAxis>& saved_mesh, uint32_t first_rank, uint32_t saved_ranks,
               uint32_t ranks) {
  MeshLayout before(saved_ranks);
  before.Add({"w", DType::kF32, false, {24, 24}}, first_rank, saved_mesh);
  Layout layout = std::move(before).Finish();
  EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout).message();
  const SavedLayout saved{layout.arrays, {}, layout.grids, saved_ranks, 1, {}};
  MeshLayout after(ranks);
  after.AddAsSaved(saved, 0);
  layout = std::move(after).Finish();
  EXPECT_TRUE(ValidateLayout(layout).ok()) << ValidateLayout(layout).message();
  return layout;
}

TEST(MeshLayout, ResizesTheDimensionThatMostRanksDivide) {
  EXPECT_THAT(BoxesOf(Resized({{8, 0}}, 0, 8, 6), 5), ElementsAre(Box{{20, 0}, {4, 24}}));
  EXPECT_THAT(BoxesOf(Resized({{4, 0}, {2, 1}}, 0, 8, 12), 11), ElementsAre(Box{{20, 12}, {4, 12}}));
  EXPECT_THAT(BoxesOf(Resized({{2, 1}, {4, 0}}, 0, 8, 12), 11), ElementsAre(Box{{20, 12}, {4, 12}}));
  EXPECT_THAT(BoxesOf(Resized({{2, 1}, {4, 0}}, 0, 8, 12), 1), ElementsAre(Box{{4, 0}, {4, 12}}));
  EXPECT_THAT(BoxesOf(Resized({{4, 0}, {2, 1}}, 0, 8, 3), 1), ElementsAre(Box{{8, 0}, {8, 24}}))
      << "3 ranks have no two columns";
}

TEST(MeshLayout, ResizesReplicasBeforeAnythingElse) {
  EXPECT_THAT(BoxesOf(Resized({{8, -1}}, 0, 8, 3), 2), ElementsAre(Box{{0, 0}, {24, 24}}));
  EXPECT_THAT(BoxesOf(Resized({{2, -1}, {4, 0}}, 0, 8, 12), 5), ElementsAre(Box{{6, 0}, {6, 24}}));
  EXPECT_THAT(BoxesOf(Resized({{2, -1}, {4, 0}}, 0, 8, 6), 5), ElementsAre(Box{{20, 0}, {4, 24}}))
      << "6 ranks are no replicas of 4 parts";
}

TEST(MeshLayout, GivesThePartOfTheRanksThatHeldAnArrayTheSameShare) {
  const Layout stage = Resized({{4, 0}}, 4, 8, 4);  // the second half of the ranks
  EXPECT_THAT(BoxesOf(stage, 1), ElementsAre());
  EXPECT_THAT(BoxesOf(stage, 2), ElementsAre(Box{{0, 0}, {12, 24}}));
  EXPECT_THAT(BoxesOf(stage, 3), ElementsAre(Box{{12, 0}, {12, 24}}));
  const Layout one = Resized({}, 7, 8, 16);
  EXPECT_THAT(BoxesOf(one, 14), ElementsAre(Box{{0, 0}, {24, 24}}));
  EXPECT_THAT(BoxesOf(one, 15), ElementsAre());
}

}  // namespace
}  // namespace cairn
