#include "runtime/staging/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/staging/drain.h"
#include "runtime/staging/memory_slot.h"
#include "tests/runtime/staging/ranks.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

// One image: a header of 4096 bytes and 10,000 of data.
ImagePlan SmallPlan() {
  ImagePlan plan;
  plan.images.push_back({.number = 1, .header = std::string(4096, 'h'), .size_bytes = 14096});
  plan.bytes = 14096;
  return plan;
}

MemoryRoom RoomOf(uint64_t bytes) { return {bytes, "memory cgroup /job_7 (1.0 GB, 0.9 GB used)"}; }

StagingOptions Options(uint64_t room, int ranks = 1) {
  StagingOptions options;
  options.tier.setting = "none";
  options.ranks_on_node = ranks;
  options.room = [room] { return RoomOf(room); };
  return options;
}

constexpr uint64_t kHead = 64 << 20;
constexpr uint64_t kSlot = 4096 + 16384;

TEST(Staging, HasAsManySlotsAsEachRanksShareOfTheMemoryAllows) {
  const auto slots = [&](uint64_t room, int ranks) {
    const auto staging = Staging::Make(Options(room, ranks), SmallPlan());
    return staging.ok() ? staging->pool.size() : 0;
  };
  EXPECT_EQ(slots(kHead + 2 * kSlot, 1), 2);
  EXPECT_EQ(slots(kHead + 2 * kSlot - 1, 1), 1);
  EXPECT_EQ(slots(kHead + kSlot - 1, 1), 0);
  EXPECT_EQ(slots(kHead + 8 * kSlot, 4), 2);
  EXPECT_EQ(slots(kHead + 8 * kSlot - 1, 4), 1);
  EXPECT_EQ(slots(kHead + 4 * kSlot - 1, 4), 0);
}

TEST(Staging, TakesNoMoreThanTheLimitHoweverMuchMemoryThereIs) {
  const auto slots = [&](uint64_t limit, int ranks) {
    StagingOptions options = Options(uint64_t{1} << 40, ranks);
    options.limit_bytes = limit;
    const auto staging = Staging::Make(options, SmallPlan());
    return staging.ok() ? staging->pool.size() : 0;
  };
  EXPECT_EQ(slots(2 * kSlot, 1), 2);
  EXPECT_EQ(slots(2 * kSlot - 1, 1), 1);
  EXPECT_EQ(slots(8 * kSlot - 1, 4), 1);
  EXPECT_EQ(slots(4 * kSlot - 1, 4), 0);
}

TEST(Staging, SaysWhatALimitCosts) {
  const std::string one_slot =
      "CAIRN_LOCAL_LIMIT has room for one snapshot of each rank: a save waits until the one before is "
      "durable";
  StagingOptions options = Options(uint64_t{1} << 40, 4);
  options.limit_bytes = 8 * kSlot;
  EXPECT_THAT(Staging::Make(options, SmallPlan())->notes, testing::Not(testing::Contains(one_slot)));
  options.limit_bytes = 8 * kSlot - 1;
  EXPECT_THAT(Staging::Make(options, SmallPlan())->notes, testing::Contains(one_slot));
  options.limit_bytes = 50000;
  EXPECT_EQ(Staging::Make(options, SmallPlan()).status().message(),
            "no room to stage 20.5 kB for each of 4 ranks on this node: 50.0 kB are left in all, bounded by "
            "CAIRN_LOCAL_LIMIT; there is nothing to write through to. Raise CAIRN_LOCAL_LIMIT as far as this "
            "site lets you, or use fewer ranks per node; until then nothing is saved");
}

TEST(Staging, OfImagesThatRanksFillTogetherIsInTheLocalTierOrNowhere) {
  TempDir dir;
  StagingOptions options = Options(kHead + 2 * kSlot, 4);
  options.ranks_of_writer = 4;
  EXPECT_EQ(Staging::Make(options, SmallPlan()).status().code(), Code::kUnavailable);
  options.tier = {.setting = dir.path(), .job = "7", .node = "n1"};
  const auto staging = Staging::Make(options, SmallPlan());
  ASSERT_TRUE(staging.ok()) << staging.status().message();
  EXPECT_EQ(staging->pool.size(), 2);
  options.room = [] { return RoomOf(kHead + kSlot - 1); };
  const auto refused = Staging::Make(options, SmallPlan());
  EXPECT_EQ(refused.status().code(), Code::kOutOfMemory);
  EXPECT_THAT(refused.status().message(),
              HasSubstr("no room to stage 20.5 kB for 4 of 4 ranks on this node"));
}

TEST(Staging, HasAsManySlotsAsTheRankWhoseImagesItFills) {
  TempDir dir;
  StagingOptions options = Options(kHead + kSlot, 2);
  options.tier = {.setting = dir.path(), .job = "7", .node = "n1"};
  options.ranks_of_writer = 2;
  const auto first = Staging::Make(options, SmallPlan());
  ASSERT_TRUE(first.ok()) << first.status().message();
  ImagePlan shared;
  shared.shared = SmallPlan().images;
  options.shared_folder = first->tier.path();
  const auto other = Staging::Make(options, shared);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(first->pool.size(), 1);
  EXPECT_EQ(other->pool.size(), 1);
}

TEST(Staging, NeedsMemoryWhereTheRunLiesInABucket) {
  StagingOptions options = Options(10 << 20, 4);
  options.write_through.run_directory = "s3://bucket/run";
  const Status none = Staging::Make(options, SmallPlan()).status();
  EXPECT_EQ(none.code(), Code::kOutOfMemory);
  EXPECT_THAT(none.message(), HasSubstr("; s3://bucket/run takes images from memory only, other than a "
                                        "directory. Ask for more memory (--mem)"));
}

TEST(Staging, SaysWhatIsMissingAndWhatToDoWhenNothingFits) {
  EXPECT_EQ(Staging::Make(Options(70 << 20, 4), SmallPlan())->warning, "");
  const auto none = Staging::Make(Options(10 << 20, 4), SmallPlan());
  EXPECT_EQ(none.status().code(), Code::kOutOfMemory);
  EXPECT_EQ(none.status().message(),
            "no room to stage 20.5 kB for each of 4 ranks on this node: 0 B are left in all, bounded by "
            "memory cgroup /job_7 (1.0 GB, 0.9 GB used); there is nothing to write through to. Ask for more "
            "memory (--mem) or use fewer ranks per node; until then nothing is saved");
}

TEST(Staging, KeepsOneSlotWhenMemoryRunsOutForTheSecond) {
  TempDir dir;
  StagingOptions options = Options(0);
  options.tier = {.setting = dir.path(), .job = "7", .node = "n1"};
  // Once for the number of slots, then before each mapping: the second slot's image is refused.
  options.room = [asked = 0]() mutable { return RoomOf(++asked <= 4 ? uint64_t{1} << 30 : 0); };
  const auto staging = Staging::Make(options, SmallPlan());
  ASSERT_TRUE(staging.ok()) << staging.status().message();
  EXPECT_EQ(staging->pool.size(), 1);
  EXPECT_EQ(staging->warning, "");
}

// A tier of a size of our choice, without privileges: its free space is what the file system says, so the state is larger than that.
TEST(Staging, FallsBackToAnonymousMemoryWhenTheTierIsTooSmall) {
  TempDir dir;
  StagingOptions options = Options(0);
  options.tier = {.setting = dir.path(), .job = "7", .node = "n1"};
  // The room is read for the tier first; that answer stands for a tier that is as good as full.
  options.room = [asked = 0]() mutable { return RoomOf(++asked == 1 ? kHead : kHead + 2 * kSlot); };
  const auto staging = Staging::Make(options, SmallPlan());
  ASSERT_TRUE(staging.ok()) << staging.status().message();
  EXPECT_TRUE(staging->tier.anonymous());
  EXPECT_EQ(staging->pool.size(), 2);
  EXPECT_THAT(staging->warning, HasSubstr("Images are staged in anonymous memory instead"));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path() + "/cairn-" + std::to_string(geteuid())));
}

TEST(Staging, WritesThroughWhereMemoryIsTooSmallEvenOnce) {
  TempDir dir;
  StagingOptions options = Options(kHead + 4 * kSlot - 1, 4);
  options.write_through.run_directory = dir.path();
  const auto staging = Staging::Make(options, SmallPlan());
  ASSERT_TRUE(staging.ok()) << staging.status().message();
  EXPECT_EQ(staging->pool.size(), 1);
  EXPECT_THAT(staging->warning, HasSubstr("no room to stage 20.5 kB for each of 4 ranks on this node"));
  EXPECT_THAT(staging->warning,
              HasSubstr("bounded by memory cgroup /job_7 (1.0 GB, 0.9 GB used). Each save is written to " +
                        dir.path() + " while the program stands still: about 0.0 s at the "));
  EXPECT_THAT(staging->warning, HasSubstr("No copy stays in the memory of this node or of a partner"));
  EXPECT_THAT(staging->warning, HasSubstr("Ask for more memory (--mem) or use fewer ranks per node"));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));  // the probe is gone
}

TEST(Staging, WritesNothingThroughThatIsWovenTogetherInAnImage) {
  TempDir dir;
  StagingOptions options = Options(kHead + kSlot - 1);
  options.write_through.run_directory = dir.path();
  ImagePlan plan = SmallPlan();
  // Rows of 25 elements: the second to the fifth; one row's first half; a column's.
  CopyTask& task = plan.images[0].copies.emplace_back();
  task = {.region = {{0, 0}, {4, 25}}, .element_bytes = 4, .offset = 4196, .stride = {100, 4}};
  EXPECT_TRUE(Staging::Make(options, plan).ok());
  task.region.extent = {1, 12};
  EXPECT_TRUE(Staging::Make(options, plan).ok());
  task.region.extent = {2, 12};
  const Status refused = Staging::Make(options, plan).status();
  EXPECT_EQ(refused.code(), Code::kOutOfMemory);
  EXPECT_THAT(refused.message(), HasSubstr("without memory for them"));
}

TEST(Staging, NeedsRoomForABufferToWriteThrough) {
  TempDir dir;
  const auto size = [&](uint64_t room) {
    StagingOptions options = Options(room, 2);
    options.write_through.run_directory = dir.path();
    const auto staging = Staging::Make(options, SmallPlan());
    return staging.ok() ? staging->pool.size() : 0;
  };
  EXPECT_EQ(size(2 * 4 * (4 << 20)), 1);  // two ranks, a quarter of each one's part, 4 MiB
  EXPECT_EQ(size(2 * 4 * (4 << 20) - 1), 0);
}

}  // namespace
}  // namespace cairn
