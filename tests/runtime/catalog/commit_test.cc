#include "runtime/catalog/commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/catalog/test_run.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Commits : public OnBothTiers {};
INSTANTIATE_TEST_SUITE_P(, Commits, ::testing::Bool(), TierName);

TEST_P(Commits, MakesACheckpointThatLoadsWithWhatWasGiven) {
  const uint32_t epoch = run.Claim();
  const Attempt attempt = run.Write(epoch, 1200, 10);
  EXPECT_THAT(run.CandidateNames(), IsEmpty());
  const auto manifest = run.Commit(attempt);
  ASSERT_TRUE(manifest.ok()) << manifest.status().message();
  const auto loaded = LoadCheckpoint(run.dir(), attempt.name.ToString());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->manifest, *manifest);
  EXPECT_EQ(loaded->manifest.run_id, run.dir().info().id);
  EXPECT_EQ(loaded->manifest.epoch, 1u);
  EXPECT_EQ(loaded->manifest.step, 1200);
  EXPECT_EQ(loaded->manifest.shards[0].bytes, 4096u + 10);
  EXPECT_EQ(loaded->manifest.total_bytes,
            4096u + 10 + 80 + loaded->manifest.index_bytes + loaded->manifest.blobs_bytes);
  EXPECT_EQ(loaded->index.saved.boxes[0].box, (Box{{0}, {10}}));
  EXPECT_EQ(loaded->blobs.items[0].by_rank[0], "seed");
  EXPECT_EQ(*ReadAll(run.Path("CURRENT"), 100), attempt.name.ToString() + "\n");
}

TEST_P(Commits, LeavesOnlyTheFilesOfTheDesign) {
  const std::string name = run.Save(run.Claim(), 1);
  EXPECT_THAT(*ListDirectory(run.Path(name)),
              ElementsAre("blobs.cbor", "index.bin", "manifest.json",
                          "shard-00001-model-00001-of-00001.safetensors", "shard-00001.sums"));
}

// The one before was killed when it had written index and blobs.
TEST_P(Commits, SeveralCommittersMakeOneCheckpointWhereverTheOthersAre) {
  const Attempt attempt = run.Write(run.Claim(), 1200);
  for (const char* name : {"/index.bin", "/blobs.cbor"})
    ASSERT_TRUE(PublishFile(attempt.path + name, "of a committer that was killed").ok());
  const auto first = run.Commit(attempt, "", "epilog", Committers::kSeveral);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(run.Commit(attempt, "", "request", Committers::kSeveral).status().code(), Code::kExists);
  const auto loaded = LoadCheckpoint(run.dir(), attempt.name.ToString());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->manifest, *first);
}

// A kill after each step of the protocol: up to the manifest's rename the older checkpoint counts, from then on the new one.
TEST(Commit, KilledAfterAnyStepLeavesTheOldOrTheNewCheckpoint) {
  for (const std::string last :
       {"nothing", "shards", "index.bin", "blobs.cbor", ".tmp-manifest.json-00000000", "manifest.json"}) {
    TestRun run;
    const uint32_t epoch = run.Claim();
    const std::string old_name = run.Save(epoch, 10);
    const std::string new_name = run.Save(epoch, 20);
    ASSERT_TRUE(PublishFile(run.Path("CURRENT"), old_name + "\n").ok());  // not swapped yet
    const std::string manifest = run.Path(new_name + "/manifest.json");
    const auto lose = [&](const std::string& file) {
      ASSERT_TRUE(RemoveFile(run.Path(new_name + "/" + file)).ok());
    };
    if (last == ".tmp-manifest.json-00000000") {
      ASSERT_EQ(rename(manifest.c_str(), run.Path(new_name + "/" + last).c_str()), 0);
    } else if (last != "manifest.json") {
      lose("manifest.json");
      if (last != "blobs.cbor") lose("blobs.cbor");
      if (last != "blobs.cbor" && last != "index.bin") lose("index.bin");
      if (last == "nothing") lose(names::Shard(1)), lose(names::Sums(1));
    }
    const uint32_t next = run.Claim();
    ASSERT_TRUE(TakeOver(run.dir(), next, "00112233445566aa").ok());
    if (last == "manifest.json") {
      EXPECT_THAT(run.CandidateNames(), ElementsAre(new_name, old_name)) << last;
    } else {
      EXPECT_THAT(run.CandidateNames(), ElementsAre(old_name)) << last;
      EXPECT_FALSE(run.Has(new_name)) << last;
    }
    EXPECT_TRUE(LoadCheckpoint(run.dir(), run.CandidateNames()[0]).ok()) << last;
  }
}

TEST_P(Commits, IsFencedOnceAnotherLifeHasClaimed) {
  const uint32_t epoch = run.Claim();
  const Attempt attempt = run.Write(epoch, 10);
  run.Claim();
  EXPECT_EQ(run.Commit(attempt).status().code(), Code::kFenced);
  EXPECT_FALSE(run.Has(attempt.name.ToString() + "/manifest.json"));
}

TEST_P(Commits, OfAnIndexThatIsNotValidWritesNothing) {
  const uint32_t epoch = run.Claim();
  const Attempt attempt = run.Write(epoch, 10);
  EXPECT_EQ(Commit(run.dir(), attempt, Index(), {}, {}).status().code(), Code::kInvalid);
  EXPECT_FALSE(run.Has(attempt.name.ToString() + "/index.bin"));
}

TEST(BeginAttempt, NeverUsesANameTwice) {
  TestRun run;
  const uint32_t epoch = run.Claim();
  const auto a = BeginAttempt(run.dir(), epoch, 10), b = BeginAttempt(run.dir(), epoch, 10);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->path, b->path);
}

TEST_P(Commits, DoesNotBringARemovedDirectoryBack) {
  const uint32_t epoch = run.Claim();
  ASSERT_TRUE(RemoveTree(run.dir().path()).ok());
  EXPECT_EQ(BeginAttempt(run.dir(), epoch, 10).status().code(), Code::kNotFound);
  EXPECT_FALSE(ListDirectory(run.dir().path()).ok());
}

TEST_P(Commits, RemovesTheAttemptAndMayBeRepeated) {
  const Attempt attempt = run.Write(run.Claim(), 10);
  EXPECT_TRUE(Abandon(run.dir(), attempt).ok());
  EXPECT_FALSE(run.Has(attempt.name.ToString()));
  EXPECT_FALSE(run.Has(names::Removed(attempt.name.epoch, attempt.name.ToString())));
  EXPECT_TRUE(Abandon(run.dir(), attempt).ok());
}

// Its outcome was unclear to its writer; the new life has found the manifest and goes on from it.
TEST_P(Commits, TouchesNothingOnceAnotherLifeHasClaimed) {
  const uint32_t epoch = run.Claim();
  const Attempt attempt = run.Write(epoch, 10);
  ASSERT_TRUE(run.Commit(attempt).ok());
  run.Claim();
  EXPECT_EQ(Abandon(run.dir(), attempt).code(), Code::kFenced);
  EXPECT_TRUE(LoadCheckpoint(run.dir(), attempt.name.ToString()).ok());
}

TEST_P(Commits, RemovesWhatAnotherLifeHasNotSeen) {
  const uint32_t epoch = run.Claim();
  ASSERT_TRUE(TakeOver(run.dir(), run.Claim(), "00112233445566aa").ok());
  const Attempt attempt = run.Write(epoch, 10);
  EXPECT_TRUE(Abandon(run.dir(), attempt).ok());
  EXPECT_FALSE(run.Has(attempt.name.ToString()));
}

}  // namespace
}  // namespace cairn
