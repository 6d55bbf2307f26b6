// Checkpoints of every version of the format must load and verify for ever. tests/golden/version-1 is a run with one checkpoint of FourRanks
// (four_ranks.h), written by the disabled test below; it is never written again. A new version of the format gets a folder of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/commit.h"
#include "runtime/catalog/epoch.h"
#include "runtime/catalog/run_directory.h"
#include "runtime/catalog/verify.h"
#include "tests/runtime/restore/four_ranks.h"
#include "tests/runtime/staging/ranks.h"

namespace cairn {
namespace {

using ::testing::IsEmpty;

// The arrays of FourRanks cut by rows among three ranks.
Layout ThreeRanks() {
  const std::vector<ArraySpec> arrays = FourRanks().arrays;
  std::vector<Piece> pieces;
  for (uint32_t a = 0; a < arrays.size(); ++a) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      const int64_t rows = arrays[a].shape[0], first = rows * rank / 3;
      Box box = Box::Whole(arrays[a].shape);
      box.offset[0] = first;
      box.extent[0] = rows * (rank + 1) / 3 - first;
      pieces.push_back({a, rank, 0, box});
    }
  }
  return WithoutEmptyPieces(MakeLayout(3, arrays, pieces));
}

TEST(Golden, AnOldCheckpointVerifiesAndLoads) {
  TempDir temp;
  const std::string path = temp.path() + "/run";
  std::filesystem::copy(CAIRN_GOLDEN "/version-1", path, std::filesystem::copy_options::recursive);
  const auto dir = RunDirectory::OpenExisting(path);
  ASSERT_TRUE(dir.ok()) << dir.status().message();
  const auto listing = ListCheckpoints(*dir);
  ASSERT_TRUE(listing.ok()) << listing.status().message();
  ASSERT_EQ(listing->checkpoints.size(), 1u);
  const std::string& name = listing->checkpoints[0].name;
  const auto report = VerifyCheckpoint(*dir, name, {.threads = 1});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->faults, IsEmpty());

  const auto loaded = LoadCheckpoint(*dir, name);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->manifest.step, 1200);
  EXPECT_EQ(loaded->manifest.label, 34);
  EXPECT_EQ(loaded->index.world_size, 4u);
  EXPECT_EQ(loaded->index.saved.arrays, FourRanks().arrays);
  ASSERT_EQ(loaded->blobs.items.size(), 1u);
  EXPECT_EQ(loaded->blobs.items[0].by_rank[2], "seed 2");
  const Layout now = ThreeRanks();
  Random random(1);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    RankMemory memory(random, now, rank);
    const auto plan = PlanLoad(loaded->index.saved, WantedBy(now, rank));
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const auto stats = ExecuteLoad(*plan, SourceFiles(loaded->index, loaded->path), memory.destinations());
    ASSERT_TRUE(stats.ok()) << stats.status().message();
    memory.Check();
  }
}

// CAIRN_GOLDEN_OUT=FOLDER golden_test --gtest_also_run_disabled_tests
TEST(Golden, DISABLED_IsWritten) {
  const char* out = std::getenv("CAIRN_GOLDEN_OUT");
  ASSERT_NE(out, nullptr);
  const auto dir = RunDirectory::Open(out, "golden");
  ASSERT_TRUE(dir.ok()) << dir.status().message();
  const auto epoch = ClaimEpoch(*dir, 0, {"c1", "1", "0", 0, "n1", 1, 1000, "0.1.0", "2026-03-01T12:00:00Z"});
  ASSERT_TRUE(epoch.ok()) << epoch.status().message();
  const auto attempt = BeginAttempt(*dir, *epoch, 1200);
  ASSERT_TRUE(attempt.ok()) << attempt.status().message();
  Random random(1);
  const auto index = SaveLayout(random, FourRanks(), {.setting = "none"}, attempt->path);
  ASSERT_TRUE(index.ok()) << index.status().message();
  Manifest manifest;
  manifest.label = 34;
  manifest.trigger = "request";
  const Blobs blobs{{{"rng", BlobPolicy::kReseed, {"seed 0", "seed 1", "seed 2", "seed 3"}}}};
  const auto committed = Commit(*dir, *attempt, *index, blobs, manifest);
  ASSERT_TRUE(committed.ok()) << committed.status().message();
}

}  // namespace
}  // namespace cairn
