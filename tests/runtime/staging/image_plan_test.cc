#include "runtime/staging/image_plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "planner/layout_builder.h"
#include "planner/saved_layout.h"
#include "tests/planner/oracle.h"

namespace cairn {
namespace {

// Two ranks; "w" [4, 6] F32 is split by columns; "s" is a scalar F64 that both hold.
Layout TwoRanks() {
  return MakeLayout(
      2, {{"w", DType::kF32, false, {4, 6}}, {"s", DType::kF64, false, {}}},
      {{0, 0, 0, {{0, 0}, {4, 2}}}, {0, 1, 0, {{0, 2}, {4, 4}}}, {1, 0, 0, {{}, {}}}, {1, 1, 0, {{}, {}}}});
}

TEST(ImagePlan, PutsEachBoxWhereTheShardHeaderSays) {
  const Layout layout = TwoRanks();
  const auto plan = PlanSave(layout);
  ASSERT_TRUE(plan.ok());
  const auto images = PlanImages(layout, *plan, 0);
  ASSERT_TRUE(images.ok()) << images.status().message();
  ASSERT_EQ(images->images.size(), 1u);
  const Image& image = images->images[0];
  EXPECT_EQ(image.number, 1u);
  EXPECT_EQ(image.header.size() % 4096, 0u);
  // The scalar is not shared: the first of its holders writes it. Wider elements lie first.
  ASSERT_EQ(image.copies.size(), 2u);
  EXPECT_EQ(image.copies[0].piece, 1u);
  EXPECT_EQ(image.copies[0].offset, image.header.size());
  EXPECT_EQ(image.copies[0].element_bytes, 8);
  EXPECT_EQ(image.copies[1].piece, 0u);
  EXPECT_EQ(image.copies[1].offset, image.header.size() + 8);
  EXPECT_EQ(image.copies[1].element_bytes, 4);
  EXPECT_EQ(image.copies[1].region, (Box{{0, 0}, {4, 2}}));
  EXPECT_EQ(image.size_bytes, image.header.size() + 8 + 32);
  EXPECT_EQ(images->bytes, image.size_bytes);

  const auto other = PlanImages(layout, *plan, 1);
  ASSERT_TRUE(other.ok());
  ASSERT_EQ(other->images.size(), 1u);
  EXPECT_EQ(other->images[0].number, 2u);
  ASSERT_EQ(other->images[0].copies.size(), 1u);
  EXPECT_EQ(other->images[0].copies[0].region, (Box{{0, 0}, {4, 4}}));  // relative to the piece
}

TEST(ImagePlan, OfAnyRankIsWhatTheDescriptionSays) {
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    const Layout listed = WithoutEmptyPieces(
        RandomLayout(random, RandomArrays(random), static_cast<uint32_t>(Uniform(random, 1, 6))));
    const auto ruled = FindRules(listed);
    ASSERT_TRUE(ruled.ok());
    const Layout& layout = i % 2 == 0 ? listed : *ruled;
    const auto plan = PlanSave(layout, {.min_split_bytes = 64});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    auto index = DescribeSave(layout, *plan);
    ASSERT_TRUE(index.ok()) << index.status().message();
    EXPECT_EQ(index->world_size, layout.world_size);
    std::multiset<std::tuple<uint32_t, uint64_t, std::string>> described,
        planned;  // file number, offset, box
    std::vector<ShardRecord> records;
    for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
      const std::vector<Piece> pieces = PiecesOf(layout, rank);
      const auto images = PlanImages(layout, *plan, rank);
      ASSERT_TRUE(images.ok()) << images.status().message();
      for (const Image& image : images->images) {
        records.push_back({image.number, image.size_bytes, {}});
        uint64_t end = image.header.size();
        for (const CopyTask& task : image.copies) {
          Box box = task.region;
          for (int d = 0; d < box.rank(); ++d) box.offset[d] += pieces[task.piece].box.offset[d];
          planned.emplace(image.number, task.offset, box.ToString());
          EXPECT_EQ(task.offset, end);  // no holes
          end = task.offset + static_cast<uint64_t>(box.elements() * task.element_bytes);
        }
        EXPECT_EQ(end, image.size_bytes);
      }
    }
    EXPECT_EQ(records.size(), index->files.size());
    ASSERT_TRUE(FillRecords(*index, records).ok());
    const auto saved = SavedIndex::Make(index->saved);
    ASSERT_TRUE(saved.ok()) << saved.status().message();
    for (const SavedBox& box : index->saved.boxes)
      described.emplace(index->files[box.file].number, box.file_offset, box.box.ToString());
    for (uint32_t a = 0; a < layout.arrays.size(); ++a) {
      if (!layout.grids.Has(a)) continue;
      const auto parts = saved->BoxesIn(a, Box::Whole(layout.arrays[a].shape));
      ASSERT_TRUE(parts.ok()) << parts.status().message();
      for (const SavedPart& part : *parts)
        described.emplace(index->files[part.saved.file].number, part.saved.file_offset,
                          part.saved.box.ToString());
    }
    EXPECT_EQ(planned, described);
  }
}

TEST(ImagePlan, RefusesAPlanOfAnotherLayout) {
  const Layout layout = TwoRanks();
  const auto plan = PlanSave(layout);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(PlanImages(layout, *plan, 2).status().code(), Code::kInternal);
  Layout other = layout;
  other.pieces[0].box.extent = {4, 1};
  EXPECT_EQ(PlanImages(other, *plan, 0).status().code(), Code::kInternal);
}

TEST(FillRecords, WantsEachPlannedFileOnceWithThePlannedSize) {
  const Layout layout = TwoRanks();
  const auto plan = PlanSave(layout);
  ASSERT_TRUE(plan.ok());
  auto index = DescribeSave(layout, *plan);
  ASSERT_TRUE(index.ok());
  ShardRecord first = index->files[0], second = index->files[1];  // of data alone
  EXPECT_EQ(first.bytes, 8u + 32);
  EXPECT_EQ(second.bytes, 64u);
  first.bytes += 4096;
  second.bytes += 8192;
  first.sums_root.bytes.fill(1);
  second.sums_root.bytes.fill(2);

  EXPECT_EQ(FillRecords(*index, std::vector{first}).message(),
            "no member reported shard-00002-model-00001-of-00001.safetensors");
  EXPECT_EQ(FillRecords(*index, std::vector{first, second, first}).code(), Code::kInternal);
  ShardRecord longer = first;
  ++longer.bytes;
  EXPECT_EQ(FillRecords(*index, std::vector{longer, second}).code(), Code::kInternal);
  ASSERT_TRUE(FillRecords(*index, std::vector{second, first}).ok());
  EXPECT_EQ(index->files[0], first);
  EXPECT_EQ(index->files[1], second);
  EXPECT_EQ(index->saved.boxes[0].file_offset, 4096u + 8);  // the columns of rank 0, behind the scalar
  EXPECT_EQ(index->saved.boxes[1].file_offset, 8192u);
  EXPECT_TRUE(ValidateIndex(*index).ok());
}

TEST(LayoutHash, ChangesWithEverythingThatALayoutIs) {
  const Layout base = TwoRanks();
  const std::vector<std::function<void(Layout&)>> changes = {
      [](Layout& l) { l.world_size = 3; },
      [](Layout& l) { l.arrays[0].name = "v"; },
      [](Layout& l) { l.arrays[0].dtype = DType::kI32; },
      [](Layout& l) { l.arrays[0].fortran = true; },
      [](Layout& l) { l.arrays[0].shape[0] = 5; },
      [](Layout& l) { l.arrays.pop_back(); },
      [](Layout& l) { l.pieces[0].rank = 1; },
      [](Layout& l) { l.pieces[0].array = 1; },
      [](Layout& l) { l.pieces[0].ordinal = 1; },
      [](Layout& l) { l.pieces[0].box.offset[1] = 1; },
      [](Layout& l) { l.pieces[0].box.extent[1] = 3; },
      [](Layout& l) { l.pieces.pop_back(); },
      [](Layout& l) { l.grids.rule_of = {kNoRule}; },
      [](Layout& l) { l.grids.rules = {{}}; },
      [](Layout& l) {
        l.grids.rules = {{1, {}, {}}};
      },
      [](Layout& l) {
        l.grids.rules = {{0, {{2, 1, 0, -1}}, {}}};
      },
      [](Layout& l) {
        l.grids.rules = {{0, {}, {0}}};
      },
      [](Layout& l) {
        l.grids.cuts = {Cuts::FromLengths(std::vector<int64_t>{2, 2})};
      },
      [](Layout& l) {
        l.grids.cuts = {Cuts::FromLengths(std::vector<int64_t>{2, 3})};
      },
  };
  std::set<std::string> hashes = {LayoutHash(base).ToHex()};
  for (const auto& change : changes) {
    Layout changed = base;
    change(changed);
    EXPECT_TRUE(hashes.insert(LayoutHash(changed).ToHex()).second);
  }
  EXPECT_EQ(LayoutHash(TwoRanks()), LayoutHash(base));
}

}  // namespace
}  // namespace cairn
