#include "runtime/interop/array_source.h"

#include <gtest/gtest.h>

#include "runtime/interop/checkpoint_source.h"
#include "tests/runtime/interop/made_run.h"

namespace cairn {
namespace {

TEST(Slabs, CutTheOutermostDimensionOfWhichAStepFits) {
  const std::vector<Box> rows = {{{0, 0}, {2, 4}}, {{2, 0}, {2, 4}}, {{4, 0}, {1, 4}}};
  EXPECT_EQ(Slabs({5, 4}, 8, 64), rows);
  const std::vector<Box> in_rows = {{{0, 0}, {1, 3}}, {{0, 3}, {1, 1}}, {{1, 0}, {1, 3}}, {{1, 3}, {1, 1}}};
  EXPECT_EQ(Slabs({2, 4}, 8, 24), in_rows);
  const std::vector<Box> elements = {{{0}, {1}}, {{1}, {1}}};
  EXPECT_EQ(Slabs({2}, 8, 4), elements);
}

TEST(Slabs, OfAScalarAreOneAndOfAnEmptyArrayNone) {
  EXPECT_EQ(Slabs({}, 8, 64), std::vector<Box>{Box{}});
  EXPECT_TRUE(Slabs({4, 0}, 8, 64).empty());
}

TEST(CheckpointSource, StreamsEveryArrayInItsOwnOrder) {
  const MadeRun run(AllKinds());
  const auto source = CheckpointSource::Open(run.dir(), run.checkpoint());
  ASSERT_TRUE(source.ok()) << source.status().message();
  for (uint32_t i = 0; i < run.arrays().size(); ++i) {
    std::string bytes;
    const Status status = Stream(**source, i, Box::Whole(run.arrays()[i].spec.shape),
                                 [&](const Box&, std::span<const std::byte> slab, uint64_t offset) {
                                   EXPECT_EQ(offset, bytes.size());
                                   bytes.append(reinterpret_cast<const char*>(slab.data()), slab.size());
                                   return OkStatus();
                                 });
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(bytes, run.arrays()[i].bytes) << run.arrays()[i].spec.name;
  }
}

TEST(CheckpointSource, RefusesAnArrayWithAHole) {
  const MadeRun run({{{"w", DType::kF32, false, {4, 2}}, "", {{{0, 0}, {1, 2}}, {{2, 0}, {2, 2}}}}});
  const auto source = CheckpointSource::Open(run.dir(), run.checkpoint());
  ASSERT_FALSE(source.ok());
  EXPECT_NE(source.status().message().find("[1:2, 0:2]"), std::string::npos) << source.status().message();
}

}  // namespace
}  // namespace cairn
