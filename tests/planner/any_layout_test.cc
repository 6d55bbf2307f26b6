// The planner's one property: what was saved in any layout is loaded into any other, byte for byte.
#include <gtest/gtest.h>

#include "planner/layout_builder.h"
#include "tests/planner/oracle.h"
#include "tests/planner/random_layout.h"

namespace cairn {
namespace {

constexpr uint64_t kPairs = Cases(2000);

LoadPlanOptions RandomOptions(Random& random) {
  LoadPlanOptions options;
  options.page_bytes = static_cast<uint64_t>(Uniform(random, 0, 12));
  options.max_gap_bytes = static_cast<uint64_t>(Uniform(random, 0, 60));
  options.max_waste = static_cast<double>(Uniform(random, 0, 100)) / 100;
  options.max_range_bytes = static_cast<uint64_t>(Uniform(random, 1, 400));
  return options;
}

TEST(Planner, LoadsAnySavedLayoutIntoAnyOther) {
  int ruled_arrays = 0, listed_arrays = 0, cyclic = 0, partly_replicated = 0;
  for (uint64_t seed = 1; seed <= kPairs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::vector<ArraySpec> arrays = RandomArrays(random);
    const Layout before =
        WithoutEmptyPieces(RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 12))));
    const Layout after = RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 12)));
    const Result<Layout> ruled = FindRules(before);
    ASSERT_TRUE(ruled.ok()) << ruled.status().message();
    for (uint32_t a = 0; a < arrays.size(); ++a) {
      ++(ruled->grids.Has(a) ? ruled_arrays : listed_arrays);
      if (!ruled->grids.Has(a)) continue;
      const Grid grid(ruled->grids, ruled->grids.rule_of[a]);
      if (grid.pieces_per_rank() > 1) ++cyclic;
      if (grid.replicas() > 1 && grid.cells() > 1) ++partly_replicated;
    }

    const SavePlanOptions options{.min_split_bytes = static_cast<uint64_t>(Uniform(random, 0, 64))};
    const Result<SavePlan> listed_save = PlanSave(before, options), ruled_save = PlanSave(*ruled, options);
    ASSERT_TRUE(listed_save.ok()) << listed_save.status().message();
    ASSERT_TRUE(ruled_save.ok()) << ruled_save.status().message();
    const std::vector<SavedFiles> saves = {Save(random, before, *listed_save),
                                           Save(random, before, *ruled_save),
                                           SaveByRule(random, before, *ruled, *ruled_save)};
    for (uint32_t rank = 0; rank < after.world_size; ++rank) {
      const LoadPlanOptions load_options = RandomOptions(random);
      const std::vector<WantedBox> wanted = WantedBy(after, rank);
      for (const SavedFiles& saved : saves) {
        const Result<LoadPlan> load = PlanLoad(saved.layout, wanted, load_options);
        ASSERT_TRUE(load.ok()) << load.status().message();
        LoadAndCompare(saved, wanted, *load, load_options);
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(ruled_arrays, static_cast<int>(Cases(1000)));
  EXPECT_GT(listed_arrays, static_cast<int>(Cases(1000)));
  EXPECT_GT(cyclic, static_cast<int>(Cases(200)));
  EXPECT_GT(partly_replicated, static_cast<int>(Cases(200)));
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
  EXPECT_GT(lost, static_cast<int>(Cases(1000)));
}

}  // namespace
}  // namespace cairn
