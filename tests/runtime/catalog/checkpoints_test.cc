#include "runtime/catalog/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/catalog/retention.h"
#include "runtime/catalog/verify.h"
#include "tests/runtime/catalog/test_run.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Listed : public OnBothTiers {};
INSTANTIATE_TEST_SUITE_P(, Listed, ::testing::Bool(), TierName);

TEST(Checkpoints, ComeNewestFirstByEpochThenStep) {
  TestRun run;
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 9), b = run.Save(first, 100);
  ASSERT_TRUE(PublishParent(run.dir(), first, "").ok());
  const uint32_t second = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), second, b).ok());
  const std::string c = run.Save(second, 105, b);
  EXPECT_THAT(run.CandidateNames(), ElementsAre(c, b, a));
}

TEST_P(Listed, LaterThanTheOneThatALifeWentOnFromAreOrphans) {
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 10), b = run.Save(first, 20);
  const uint32_t second = run.Claim();
  EXPECT_THAT(run.CandidateNames(), ElementsAre(b, a));  // undecided
  ASSERT_TRUE(PublishParent(run.dir(), second, a).ok());
  EXPECT_THAT(run.CandidateNames(), ElementsAre(a));
  const std::string c = run.Save(second, 15, a);
  EXPECT_THAT(run.CandidateNames(), ElementsAre(c, a));
  EXPECT_EQ(run.List().checkpoints.size(), 3u);
  EXPECT_TRUE(run.List().checkpoints[1].orphan);
}

TEST(Checkpoints, OfABranchThatWasLeftAreOrphansForAllLaterLives) {
  TestRun run;
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 10);
  ASSERT_TRUE(PublishParent(run.dir(), first, "").ok());
  const uint32_t second = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), second, a).ok());
  const std::string b = run.Save(second, 20, a);
  const uint32_t third = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), third, a).ok());  // b was found damaged, say
  run.Claim();                                           // a life that dies before it decides
  const uint32_t fifth = run.Claim();
  EXPECT_THAT(run.CandidateNames(), ElementsAre(a));
  ASSERT_TRUE(PublishParent(run.dir(), fifth, a).ok());
  const std::string c = run.Save(fifth, 12, a);
  EXPECT_THAT(run.CandidateNames(), ElementsAre(c, a));
}

TEST(Checkpoints, OfOlderEpochsAreOrphansOnceALifeBeganFresh) {
  TestRun run;
  const uint32_t first = run.Claim();
  run.Save(first, 10);
  const uint32_t second = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), second, "").ok());  // --checkpoint-resume=never
  EXPECT_THAT(run.CandidateNames(), IsEmpty());
  EXPECT_TRUE(MayStartFresh(run.List()).ok());
  const std::string b = run.Save(second, 5);
  run.Claim();
  EXPECT_THAT(run.CandidateNames(), ElementsAre(b));
}

TEST(Checkpoints, TellForAnySnapshotWhetherItIsOnTheLine) {
  TestRun run;
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 10);
  run.Save(first, 20);
  const uint32_t second = run.Claim();
  EXPECT_TRUE(run.List().OnLine(first, 30));  // undecided: whatever the life before came to
  EXPECT_TRUE(run.List().OnLine(second, 1));
  EXPECT_FALSE(run.List().OnLine(second + 1, 1));  // no such life
  ASSERT_TRUE(PublishParent(run.dir(), second, a).ok());
  EXPECT_TRUE(run.List().OnLine(first, 10));
  EXPECT_FALSE(run.List().OnLine(first, 11));
  EXPECT_TRUE(run.List().OnLine(second, 11));
  const uint32_t third = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), third, "").ok());
  EXPECT_FALSE(run.List().OnLine(first, 10));
  EXPECT_FALSE(run.List().OnLine(second, 11));
}

TEST(Checkpoints, KnowTheLineFromTheirManifestsWhenAParentFileIsLost) {
  TestRun run;
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 10);
  run.Save(first, 20);
  const uint32_t second = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), second, a).ok());
  const std::string c = run.Save(second, 15, a);
  run.FlipByte("PARENT-00000002", 20);
  EXPECT_THAT(run.CandidateNames(), ElementsAre(c, a));
}

TEST_P(Listed, ThatAreMarkedArePassedOverButListed) {
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10), b = run.Save(epoch, 20);
  ASSERT_TRUE(MarkDamaged(run.dir(), b, "block 3 does not match").ok());
  EXPECT_THAT(run.CandidateNames(), ElementsAre(a));
  EXPECT_EQ(run.List().checkpoints[0].struck, "block 3 does not match");
  ASSERT_TRUE(MarkDamaged(run.dir(), a, "truncated").ok());
  EXPECT_THAT(run.CandidateNames(), IsEmpty());
  const Status fresh = MayStartFresh(run.List());
  EXPECT_EQ(fresh.code(), Code::kDamage);
  EXPECT_THAT(fresh.message(), HasSubstr(b + ", which cannot be used: block 3"));
}

TEST(Checkpoints, WithADamagedManifestTakeTheirTurnAndAreThenNamed) {
  TestRun run;
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10), b = run.Save(epoch, 20);
  run.FlipByte(b + "/manifest.json", 50);
  EXPECT_THAT(run.CandidateNames(), ElementsAre(b, a));
  const Status status = LoadCheckpoint(run.dir(), b).status();
  EXPECT_EQ(status.code(), Code::kDamage);
  EXPECT_THAT(status.message(), HasSubstr(b + "/manifest.json: manifest: its checksum"));
}

TEST(MayStartFresh, IsRefusedWhenCommittedCheckpointsHaveVanished) {
  TestRun run;
  const uint32_t epoch = run.Claim();
  EXPECT_TRUE(MayStartFresh(run.List()).ok());
  const std::string a = run.Save(epoch, 10);
  ASSERT_TRUE(RemoveTree(run.Path(a)).ok());
  const Status status = MayStartFresh(run.List());
  EXPECT_EQ(status.code(), Code::kDamage);
  EXPECT_THAT(status.message(), HasSubstr(a + ", which is not there any more"));
}

TEST(LoadCheckpoint, NamesTheDamagedFile) {
  struct Case {
    std::string file;
    std::function<void(const TestRun&, const std::string&)> damage;
    std::string message;
  };
  const auto flip = [](const TestRun& run, const std::string& file) { run.FlipByte(file, 60); };
  const auto cut = [](const TestRun& run, const std::string& file) {
    std::filesystem::resize_file(run.Path(file), std::filesystem::file_size(run.Path(file)) - 1);
  };
  const auto lose = [](const TestRun& run, const std::string& file) {
    std::filesystem::remove(run.Path(file));
  };
  for (const Case& c :
       {Case{"index.bin", flip, "does not match the hash"}, Case{"index.bin", cut, "truncated"},
        Case{"index.bin", lose, "is missing"}, Case{"blobs.cbor", flip, "does not match the hash"},
        Case{names::Shard(1), cut, "has 4105 bytes instead of 4106: it was truncated"},
        Case{names::Shard(1), lose, "is missing"}, Case{names::Sums(1), lose, "is missing"}}) {
    TestRun run;
    const std::string name = run.Save(run.Claim(), 10);
    c.damage(run, name + "/" + c.file);
    const Status status = LoadCheckpoint(run.dir(), name).status();
    EXPECT_EQ(status.code(), Code::kDamage) << c.file;
    EXPECT_THAT(status.message(), HasSubstr(name + "/" + c.file));
    EXPECT_THAT(status.message(), HasSubstr(c.message));
  }
}

TEST(Checkpoints, OfANewerCairnTakeTheirTurnAndAreNotDamaged) {
  TestRun run;
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10), b = run.Save(epoch, 20);
  run.MakeManifestNewer(b);
  EXPECT_THAT(run.CandidateNames(), ElementsAre(b, a));
  EXPECT_EQ(run.List().checkpoints[0].readable.code(), Code::kMismatch);
  const Status status = LoadCheckpoint(run.dir(), b).status();
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("manifest.json: manifest: version 3 was written by a newer Cairn"));
  // Neither is it pruned, nor does it count among the two that are kept.
  const std::string c = run.Save(epoch, 30), d = run.Save(epoch, 40);
  EXPECT_THAT(PlanRetention(run.List(), epoch, "", {{KeepRule::kLast, 2}}, {}), ElementsAre(a));
}

TEST(LoadCheckpoint, DoesNotCallTheChecksumsOfANewerCairnDamaged) {
  TestRun run;
  const std::string name = run.Save(run.Claim(), 10);
  run.MakeSumsNewer(name);
  EXPECT_EQ(LoadCheckpoint(run.dir(), name).status().code(), Code::kMismatch);
  const auto verified = VerifyCheckpoint(run.dir(), name);
  EXPECT_EQ(verified.status().code(), Code::kMismatch);
  EXPECT_THAT(verified.status().message(),
              HasSubstr("shard-00001.sums: checksum file: version 2 was written by a newer Cairn"));
  run.FlipByte(name + "/" + names::Sums(1), 30);  // then nobody can tell
  EXPECT_EQ(LoadCheckpoint(run.dir(), name).status().code(), Code::kDamage);
}

TEST(LoadCheckpoint, DoesNotCallDamagedWhatItMayNotRead) {
  TestRun run;
  const std::string name = run.Save(run.Claim(), 10);
  EXPECT_EQ(LoadCheckpoint(run.dir(), "step-000000000099.e1.00000000").status().code(), Code::kNotFound);
  ASSERT_EQ(chmod(std::filesystem::path(run.dir().path()).parent_path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(run.Path(name + "/manifest.json").c_str(), 0600), 0);
  ASSERT_EQ(chmod(run.Path(name + "/index.bin").c_str(), 0000), 0);
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(chmod(run.Path(name + "/manifest.json").c_str(), 0644), 0);
    ASSERT_EQ(seteuid(65534), 0);
  }
  const Status status = LoadCheckpoint(run.dir(), name).status();
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(status.code(), Code::kPermission) << status.message();
}

TEST(LoadCheckpoint, RefusesTheManifestOfAnotherCheckpoint) {
  TestRun run;
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10), b = run.Save(epoch, 20);
  std::filesystem::copy_file(run.Path(a + "/manifest.json"), run.Path(b + "/manifest.json"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(LoadCheckpoint(run.dir(), b).status().message(),
              HasSubstr("is the manifest of step 10 of epoch 1"));
}

}  // namespace
}  // namespace cairn
