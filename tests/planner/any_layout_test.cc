// The planner's one property: what was saved in any layout is loaded into any other, byte for byte.
#include <gtest/gtest.h>

#include "tests/planner/oracle.h"
#include "tests/planner/random_layout.h"

namespace cairn {
namespace {

constexpr uint64_t kPairs = 2000;

LoadPlanOptions RandomOptions(Random& random) {
  LoadPlanOptions options;
  options.page_bytes = static_cast<uint64_t>(Uniform(random, 0, 12));
  options.max_gap_bytes = static_cast<uint64_t>(Uniform(random, 0, 60));
  options.max_waste = static_cast<double>(Uniform(random, 0, 100)) / 100;
  options.max_range_bytes = static_cast<uint64_t>(Uniform(random, 1, 400));
  return options;
}

TEST(Planner, LoadsAnySavedLayoutIntoAnyOther) {
  for (uint64_t seed = 1; seed <= kPairs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::vector<ArraySpec> arrays = RandomArrays(random);
    const Layout before = RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 9)));
    const Layout after = RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 9)));

    const Result<SavePlan> save =
        PlanSave(before, {.min_split_bytes = static_cast<uint64_t>(Uniform(random, 0, 64))});
    ASSERT_TRUE(save.ok()) << save.status().message();
    const SavedFiles saved = Save(random, before, *save);
    for (uint32_t rank = 0; rank < after.world_size; ++rank) {
      const LoadPlanOptions options = RandomOptions(random);
      const std::vector<WantedBox> wanted = WantedBy(after, rank);
      const Result<LoadPlan> load = PlanLoad(saved.layout, wanted, options);
      ASSERT_TRUE(load.ok()) << load.status().message();
      LoadAndCompare(saved, wanted, *load, options);
    }
    if (HasFailure()) return;
  }
}

TEST(Planner, ReadsAtMostTheAllowedWasteWhereNothingOverlaps) {
  for (uint64_t seed = 1; seed <= kPairs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::vector<ArraySpec> arrays = RandomArrays(random);
    const Layout before = RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 9)));
    const Result<SavePlan> save = PlanSave(before, {.min_split_bytes = 1});
    ASSERT_TRUE(save.ok());
    const SavedFiles saved = Save(random, before, *save);

    LoadPlanOptions options = RandomOptions(random);
    options.page_bytes = 0;
    std::vector<WantedBox> wanted;
    for (uint32_t a = 0; a < arrays.size(); ++a) {
      Box part = Box::Whole(arrays[a].shape);
      for (int d = 0; d < part.rank(); ++d) part.extent[d] = (part.extent[d] + 1) / 2;
      wanted.push_back({a, part});
    }
    const Result<LoadPlan> load = PlanLoad(saved.layout, wanted, options);
    ASSERT_TRUE(load.ok());
    EXPECT_LE(static_cast<double>(load->read_bytes),
              (1 + options.max_waste) * static_cast<double>(load->needed_bytes));
    if (HasFailure()) return;
  }
}

TEST(Planner, ReportsAnyLostBoxThatHeldSomethingAlone) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= kPairs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::vector<ArraySpec> arrays = RandomArrays(random);
    const Layout layout = RandomLayout(random, arrays, 3);
    const Result<SavePlan> save = PlanSave(layout, {.min_split_bytes = 1});
    ASSERT_TRUE(save.ok());
    SavedLayout saved = Save(random, layout, *save).layout;
    if (saved.boxes.empty()) continue;

    const auto gone = saved.boxes.begin() + Uniform(random, 0, static_cast<int64_t>(saved.boxes.size()) - 1);
    const SavedBox box = *gone;
    saved.boxes.erase(gone);
    bool alone = false;  // some element of it lies in no other box
    ForEachElement(box.box, [&](const Dims& at) {
      bool elsewhere = false;
      for (const SavedBox& other : saved.boxes) {
        elsewhere |= other.array == box.array && other.box.Contains(Box{at, Dims::Filled(at.size(), 1)});
      }
      alone |= !elsewhere;
    });
    const Result<LoadPlan> load = PlanLoad(saved, {{box.array, Box::Whole(arrays[box.array].shape)}});
    EXPECT_EQ(load.ok(), !alone);
    if (alone && !load.ok()) {
      ++lost;
      EXPECT_EQ(load.status().code(), Code::kDamage);
      EXPECT_NE(load.status().message().find("'" + arrays[box.array].name + "'"), std::string::npos);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(lost, 1000);
}

}  // namespace
}  // namespace cairn
