#include "runtime/restore/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "planner/layout_builder.h"
#include "runtime/formats/names.h"
#include "runtime/formats/sums.h"
#include "tests/runtime/staging/ranks.h"
#include "tests/support/memory_store.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr LoadOptions kNoWaiting{.attribute_cache_bound = std::chrono::milliseconds(0)};

Result<LoadStats> LoadRank(const Index& index, const std::string& directory, const Layout& layout,
                           uint32_t rank, RankMemory& memory, const LoadOptions& options = kNoWaiting) {
  CAIRN_ASSIGN_OR_RETURN(const LoadPlan plan, PlanLoad(index.saved, WantedBy(layout, rank)));
  return ExecuteLoad(plan, SourceFiles(index, directory), memory.destinations(), options);
}

TEST(Reader, BringsAnyLayoutIntoAnyOther) {
  Random random(11);
  for (int i = 0; i < 60; ++i) {
    TempDir dir;
    const LocalTierOptions local = {.setting = i % 2 == 0 ? "none" : dir.path(), .job = "1", .node = "n1"};
    const std::vector<ArraySpec> arrays = RandomArrays(random);
    const Result<Layout> ruled =
        FindRules(RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 5))));
    ASSERT_TRUE(ruled.ok());
    const Layout& from = *ruled;
    const auto index = SaveLayout(random, from, local, dir.path());
    ASSERT_TRUE(index.ok()) << index.status().message();
    ASSERT_TRUE(ValidateIndex(*index).ok()) << ValidateIndex(*index).message();
    const Layout to = RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 5)));
    for (uint32_t rank = 0; rank < to.world_size; ++rank) {
      RankMemory memory(random, to, rank);
      const auto stats = LoadRank(*index, dir.path(), to, rank, memory);
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      memory.Check();
      ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << i << ", rank " << rank;
    }
  }
}

TEST(Reader, BringsAnyLayoutIntoAnyOtherByWayOfABucket) {
  Random random(12);
  for (int i = 0; i < 20; ++i) {
    const StoreInUse in_use(std::make_shared<MemoryStore>(1000));
    const std::vector<ArraySpec> arrays = RandomArrays(random);
    const Result<Layout> from =
        FindRules(RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 5))));
    ASSERT_TRUE(from.ok());
    const auto index = SaveLayout(random, *from, {.setting = "none"}, "s3://bucket/run/step-1");
    ASSERT_TRUE(index.ok()) << index.status().message();
    const Layout to = RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 5)));
    for (uint32_t rank = 0; rank < to.world_size; ++rank) {
      RankMemory memory(random, to, rank);
      const auto stats = LoadRank(*index, "s3://bucket/run/step-1", to, rank, memory);
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      memory.Check();
      ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << i << ", rank " << rank;
    }
  }
}

// Four columns of 1000 x 4000 F64 (8 MB each, so every file has two blocks) on four ranks, to be loaded as two halves of rows.
struct TwoBlocks {
  static Box Columns(int64_t rank) { return {{0, rank * 1000}, {1000, 1000}}; }
  static Box Rows(int64_t rank) { return {{rank * 500, 0}, {500, 4000}}; }

  TwoBlocks() {
    const auto tier = LocalTier::Open({.setting = "none"});
    const auto plan = PlanSave(from);
    std::vector<ShardRecord> records;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      std::vector<double> memory(1000 * 1000);
      for (int64_t r = 0; r < 1000; ++r) {
        for (int64_t c = 0; c < 1000; ++c)
          memory[static_cast<size_t>(r * 1000 + c)] = Value(r, rank * 1000 + c);
      }
      const auto images = PlanImages(from, *plan, rank);
      const auto own = SaveRank(*tier, *images, {{8000, 8}}, {memory.data()}, {.directory = dir.path()});
      EXPECT_TRUE(own.ok()) << own.status().message();
      records.insert(records.end(), own->begin(), own->end());
    }
    auto described = DescribeSave(from, *plan);
    EXPECT_TRUE(FillRecords(*described, records).ok());
    index = *std::move(described);
  }
  static double Value(int64_t row, int64_t column) { return static_cast<double>(row * 4000 + column); }

  Result<LoadStats> Load(int64_t rank, std::vector<double>& memory,
                         const LoadOptions& options = kNoWaiting) const {
    memory.assign(500 * 4000, -1);
    CAIRN_ASSIGN_OR_RETURN(const LoadPlan plan, PlanLoad(index.saved, {{0, Rows(rank)}}));
    const std::vector<Destination> to = {
        {reinterpret_cast<std::byte*>(memory.data()), Rows(rank), {32000, 8}, 8}};
    return ExecuteLoad(plan, SourceFiles(index, dir.path()), to, options);
  }
  Result<LoadStats> Load(const LoadOptions& options = kNoWaiting) const {
    std::vector<double> memory;
    return Load(0, memory, options);
  }
  std::string Shard(uint32_t number) const { return dir.path() + "/" + names::Shard(number); }
  std::string SumsOf(uint32_t number) const { return dir.path() + "/" + names::Sums(number); }

  TempDir dir;
  Layout from = MakeLayout(
      4, {{"u", DType::kF64, false, {1000, 4000}}},
      {{0, 0, 0, Columns(0)}, {0, 1, 0, Columns(1)}, {0, 2, 0, Columns(2)}, {0, 3, 0, Columns(3)}});
  Index index;
};

TEST(Reader, ReadsEachBlockThatARankNeedsOnceAndWhole) {
  TwoBlocks saved;
  for (const int64_t rank : {0, 1}) {
    std::vector<double> memory;
    const auto stats = saved.Load(rank, memory);
    ASSERT_TRUE(stats.ok()) << stats.status().message();
    for (int64_t r = 0; r < 500; ++r) {
      for (int64_t c = 0; c < 4000; ++c) {
        ASSERT_EQ(memory[static_cast<size_t>(r * 4000 + c)], TwoBlocks::Value(rank * 500 + r, c))
            << r << ", " << c;
      }
    }
    EXPECT_EQ(stats->needed_bytes, 16000000u);
    EXPECT_EQ(stats->blocks_read_twice, 0u);
  }
  // Rows 0 to 499 end at byte 4 096 + 4 000 000 of each file, inside its first block.
  EXPECT_EQ(saved.Load()->blocks_verified, 4u);
  EXPECT_EQ(saved.Load()->read_bytes, 4u * (4 << 20));
}

TEST(Reader, ReadsABlockOnceForManyRanges) {
  TwoBlocks saved;
  // Every hundredth row of one file: ten ranges, two blocks.
  std::vector<WantedBox> wanted;
  std::vector<double> memory(10 * 1000, -1);
  std::vector<Destination> to;
  for (int64_t i = 0; i < 10; ++i) {
    const Box row{{i * 100, 0}, {1, 1000}};
    wanted.push_back({0, row});
    to.push_back({reinterpret_cast<std::byte*>(memory.data() + i * 1000), row, {8000, 8}, 8});
  }
  const auto plan = PlanLoad(saved.index.saved, wanted);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->ranges.size(), 10u);
  const auto stats = ExecuteLoad(*plan, SourceFiles(saved.index, saved.dir.path()), to, kNoWaiting);
  ASSERT_TRUE(stats.ok()) << stats.status().message();
  EXPECT_EQ(stats->blocks_verified, 2u);
  for (int64_t i = 0; i < 10000; ++i) {
    ASSERT_EQ(memory[static_cast<size_t>(i)], TwoBlocks::Value(i / 1000 * 100, i % 1000)) << i;
  }
}

TEST(Reader, NamesFileBlockAndOffsetOfEveryFlippedBitThatItReads) {
  TwoBlocks saved;
  Random random(12);
  for (int i = 0; i < 25; ++i) {
    const auto number = static_cast<uint32_t>(Uniform(random, 1, 4));
    const auto bit = static_cast<uint64_t>(Uniform(random, 0, 8 * (4 << 20) - 1));
    FlipBit(saved.Shard(number), bit);
    const auto stats = saved.Load();
    EXPECT_EQ(stats.status().code(), Code::kDamage);
    EXPECT_THAT(stats.status().message(),
                AllOf(HasSubstr(saved.Shard(number) + ": block 0 (4194304 bytes at offset 0)"),
                      HasSubstr("read twice")));
    FlipBit(saved.Shard(number), bit);
  }
  // What is not read is not verified: the second block belongs to the other rank.
  FlipBit(saved.Shard(1), 8 * (5 << 20));
  EXPECT_TRUE(saved.Load().ok());
  std::vector<double> memory;
  const auto other = saved.Load(1, memory);
  EXPECT_EQ(other.status().code(), Code::kDamage);
  EXPECT_THAT(other.status().message(), HasSubstr("block 1 (3809792 bytes at offset 4194304)"));
}

TEST(Reader, OfObjectsReadsAgainWhatDiffersAndNamesWhatDiffersTwice) {
  const TwoBlocks saved;
  const auto store = std::make_shared<MemoryStore>();
  for (const auto& entry : std::filesystem::directory_iterator(saved.dir.path()))
    ASSERT_TRUE(store->Put("run/" + entry.path().filename().string(), ReadWholeFile(entry.path())).ok());
  const std::string shard = "run/" + names::Shard(2);
  int reads = 0;
  const StoreInUse in_use(
      std::make_shared<FaultyStore>(store, [&](std::string_view call, const std::string& key) {
        if (call == "Read" && key == shard && ++reads == 2) store->Flip(shard, 5000);
        return FaultyStore::Fate::kPass;
      }));
  const auto load = [&]() -> Result<LoadStats> {
    std::vector<double> memory(500 * 4000, -1);
    CAIRN_ASSIGN_OR_RETURN(const LoadPlan plan, PlanLoad(saved.index.saved, {{0, TwoBlocks::Rows(0)}}));
    const std::vector<Destination> to = {
        {reinterpret_cast<std::byte*>(memory.data()), TwoBlocks::Rows(0), {32000, 8}, 8}};
    CAIRN_ASSIGN_OR_RETURN(const LoadStats stats,
                           ExecuteLoad(plan, SourceFiles(saved.index, "s3://bucket/run"), to, kNoWaiting));
    for (int64_t i = 0; i < 500 * 4000; ++i)
      EXPECT_EQ(memory[static_cast<size_t>(i)], TwoBlocks::Value(i / 4000, i % 4000));
    return stats;
  };
  store->Flip(shard, 5000);  // until the second read
  const auto once = load();
  ASSERT_TRUE(once.ok()) << once.status().message();
  EXPECT_EQ(once->blocks_read_twice, 1u);
  EXPECT_EQ(once->blocks_verified, 4u);
  store->Flip(shard, 5000);  // for good
  const auto twice = load();
  EXPECT_EQ(twice.status().code(), Code::kDamage);
  EXPECT_THAT(twice.status().message(),
              HasSubstr("s3://bucket/" + shard + ": block 0 (4194304 bytes at offset 0)"));
  store->Flip(shard, 5000);
  ASSERT_TRUE(store->Remove({&shard, 1}).ok());
  EXPECT_EQ(load().status().message(), "s3://bucket/" + shard + " is missing");
}

TEST(Reader, FindsEveryFlippedBitOfTheSums) {
  TwoBlocks saved;
  const auto bytes = std::filesystem::file_size(saved.SumsOf(2));
  for (uint64_t bit = 0; bit < 8 * bytes; ++bit) {
    FlipBit(saved.SumsOf(2), bit);
    const auto plan = PlanLoad(saved.index.saved, {{0, {{0, 1000}, {1, 1}}}});
    double element = 0;
    const auto stats =
        ExecuteLoad(*plan, SourceFiles(saved.index, saved.dir.path()),
                    {{reinterpret_cast<std::byte*>(&element), {{0, 1000}, {1, 1}}, {8, 8}, 8}}, kNoWaiting);
    ASSERT_EQ(stats.status().code(), Code::kDamage) << "bit " << bit;
    ASSERT_THAT(stats.status().message(), HasSubstr(saved.SumsOf(2)));
    FlipBit(saved.SumsOf(2), bit);
  }
}

TEST(Reader, RefusesSumsThatAreWholeButNotThoseOfTheIndex) {
  TwoBlocks saved;
  std::filesystem::copy_file(saved.SumsOf(1), saved.SumsOf(2),
                             std::filesystem::copy_options::overwrite_existing);
  const auto stats = saved.Load();
  EXPECT_EQ(stats.status().code(), Code::kDamage);
  EXPECT_THAT(stats.status().message(), HasSubstr(saved.SumsOf(2) + " does not belong to this checkpoint"));
}

TEST(Reader, CallsAFileOfAnotherSizeOrAMissingOneDamage) {
  TwoBlocks saved;
  std::filesystem::resize_file(saved.Shard(3), 5000);
  EXPECT_THAT(saved.Load().status().message(),
              HasSubstr(saved.Shard(3) + " has 5000 bytes instead of 8004096"));
  EXPECT_EQ(saved.Load().status().code(), Code::kDamage);
  std::filesystem::remove(saved.Shard(3));
  EXPECT_EQ(saved.Load().status().code(), Code::kDamage);
  EXPECT_EQ(saved.Load().status().message(), saved.Shard(3) + " is missing");
}

TEST(Reader, CallsTruncatedOrMissingSumsDamage) {
  TwoBlocks saved;
  std::filesystem::resize_file(saved.SumsOf(1), 10);
  EXPECT_EQ(saved.Load().status().code(), Code::kDamage);
  std::filesystem::remove(saved.SumsOf(1));
  EXPECT_EQ(saved.Load().status().code(), Code::kDamage);
  EXPECT_EQ(saved.Load().status().message(), saved.SumsOf(1) + " is missing");
}

TEST(Reader, WaitsForAFileThatAnAttributeCacheHidesForAWhile) {
  TwoBlocks saved;
  std::filesystem::rename(saved.Shard(1), saved.Shard(1) + ".hidden");
  auto load = std::async(std::launch::async,
                         [&] { return saved.Load({.attribute_cache_bound = std::chrono::minutes(1)}).ok(); });
  std::filesystem::rename(saved.Shard(1) + ".hidden", saved.Shard(1));
  EXPECT_TRUE(load.get());
}

TEST(Reader, DoesNotCallAMissingMountDamage) {
  TwoBlocks saved;
  const std::string away = saved.dir.path() + ".away";
  std::filesystem::rename(saved.dir.path(), away);
  const auto stats = saved.Load();
  std::filesystem::rename(away, saved.dir.path());
  EXPECT_EQ(stats.status().code(), Code::kIo);
  EXPECT_THAT(stats.status().message(), HasSubstr(saved.dir.path() + " cannot be seen on this node"));
}

TEST(Reader, DoesNotCallAnUnreadableFileDamage) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  TwoBlocks saved;
  ASSERT_EQ(chmod(saved.dir.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(saved.Shard(2).c_str(), 0600), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    const auto stats = saved.Load();
    _exit(stats.status().code() == Code::kPermission &&
                  stats.status().message().find(saved.Shard(2)) != std::string::npos
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Reader, RefusesAPlanThatDoesNotFitItsFilesOrDestinations) {
  TwoBlocks saved;
  const Box one{{0, 0}, {1, 1}};
  double element = 0;
  const Destination to{reinterpret_cast<std::byte*>(&element), one, {8, 8}, 8};
  const auto files = SourceFiles(saved.index, saved.dir.path());
  const CopyOut copy{0, one, 0, {8000, 8}};
  const auto code = [&](const ReadRange& range) {
    return ExecuteLoad({{range}, 8, 8}, files, {to}, kNoWaiting).status().code();
  };
  EXPECT_EQ(code({0, 4096, 8, {copy}}), Code::kOk);
  EXPECT_EQ(code({9, 4096, 8, {copy}}), Code::kInternal);
  EXPECT_EQ(code({0, 8004096, 8, {copy}}), Code::kInternal);
  EXPECT_EQ(code({0, 4096, 8, {{1, one, 0, {8000, 8}}}}), Code::kInternal);
  EXPECT_EQ(code({0, 4096, 8, {{0, one, 5 << 20, {8000, 8}}}}),
            Code::kInternal);  // copies beyond what it reads
}

}  // namespace
}  // namespace cairn
