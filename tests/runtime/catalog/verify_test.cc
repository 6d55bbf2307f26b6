#include "runtime/catalog/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/catalog/test_run.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kDataBytes = (9 << 20) + 5;  // with its header, three blocks

class Verified : public OnBothTiers {};
INSTANTIATE_TEST_SUITE_P(, Verified, ::testing::Bool(), TierName);

TEST_P(Verified, ReadsEveryByteOfAGoodCheckpoint) {
  const std::string name = run.Save(run.Claim(), 10, "", kDataBytes);
  uint64_t last_done = 0;
  VerifyOptions options;
  options.threads = 3;
  options.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_GT(done, last_done);
    EXPECT_EQ(total, 4096 + kDataBytes);
    last_done = done;
  };
  const auto report = VerifyCheckpoint(run.dir(), name, options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->faults, IsEmpty());
  EXPECT_EQ(report->bytes, 4096 + kDataBytes);
  EXPECT_EQ(last_done, 4096 + kDataBytes);
}

TEST_P(Verified, NamesTheBlockOfAFlippedByte) {
  const std::string name = run.Save(run.Claim(), 10, "", kDataBytes);
  run.FlipByte(name + "/" + names::Shard(1), (4 << 20) + 17);
  run.FlipByte(name + "/" + names::Shard(1), 4096 + kDataBytes - 1);
  const auto report = VerifyCheckpoint(run.dir(), name, {.threads = 2});
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->faults.size(), 2u);
  EXPECT_EQ(report->faults[0].file, names::Shard(1));
  EXPECT_EQ(report->faults[0].offset, 4194304u);
  EXPECT_EQ(report->faults[0].bytes, 4194304u);
  EXPECT_EQ(report->faults[1].offset, 8388608u);
  EXPECT_EQ(report->faults[1].bytes, 4096 + kDataBytes - 8388608);
  EXPECT_THAT(report->faults[1].reason, HasSubstr("block 2 does not match its checksum"));
}

TEST(Verify, SeesAFlipOfEveryByteOfTheSmallFiles) {
  TestRun run;
  const std::string name = run.Save(run.Claim(), 10);
  for (const std::string& file :
       {std::string("manifest.json"), std::string("index.bin"), std::string("blobs.cbor"), names::Sums(1)}) {
    const uint64_t bytes = *FileBytes(run.Path(name + "/" + file));
    for (uint64_t at = 0; at < bytes; at += 13) {
      run.FlipByte(name + "/" + file, at);
      const auto report = VerifyCheckpoint(run.dir(), name);
      ASSERT_TRUE(report.ok()) << report.status().message();
      ASSERT_EQ(report->faults.size(), 1u) << file << " byte " << at;
      EXPECT_EQ(report->faults[0].file, file);
      run.FlipByte(name + "/" + file, at);
    }
  }
  EXPECT_THAT(VerifyCheckpoint(run.dir(), name)->faults, IsEmpty());
}

TEST(Verify, NamesTruncatedMissingAndOverlongShards) {
  TestRun run;
  const std::string name = run.Save(run.Claim(), 10, "", kDataBytes);
  const std::string shard = run.Path(name + "/" + names::Shard(1));
  std::filesystem::resize_file(shard, (4 << 20) + 1);
  auto report = VerifyCheckpoint(run.dir(), name);
  ASSERT_EQ(report->faults.size(), 2u);  // the blocks that are not whole
  EXPECT_EQ(report->faults[0].offset, 4194304u);
  EXPECT_THAT(report->faults[0].reason, HasSubstr("truncated"));
  std::filesystem::resize_file(shard, 4096 + kDataBytes + 1);
  report = VerifyCheckpoint(run.dir(), name);
  ASSERT_EQ(report->faults.size(), 1u);
  EXPECT_THAT(report->faults[0].reason, HasSubstr("bytes instead of"));
  std::filesystem::remove(shard);
  report = VerifyCheckpoint(run.dir(), name);
  ASSERT_EQ(report->faults.size(), 1u);
  EXPECT_EQ(report->faults[0].reason, "is missing");
}

// What was read badly once is read again, and that counts.
TEST(Verify, CallsDamageOnlyWhatASecondLookSeesToo) {
  const auto store = std::make_shared<MemoryStore>();
  int looks = 0, bad_looks = 0;
  const StoreInUse in_use(
      std::make_shared<FaultyStore>(store, [&](std::string_view call, const std::string& key) {
        if (call == "Read" && key.ends_with(names::Shard(1))) {
          if (looks == 0 || looks == bad_looks) store->Flip(key, 4096 + 5);
          ++looks;
        }
        return FaultyStore::Fate::kPass;
      }));
  TestRun run("s3://bucket/a/run");
  const std::string name = run.Save(run.Claim(), 10, "", 100);
  bad_looks = 1;
  EXPECT_THAT(VerifyCheckpoint(run.dir(), name)->faults, IsEmpty());
  EXPECT_EQ(looks, 2);
  looks = 0, bad_looks = 2;
  EXPECT_EQ(VerifyCheckpoint(run.dir(), name)->faults.size(), 1U);
  EXPECT_EQ(looks, 2);
}

TEST(Verify, RefusesChecksumsOfAnotherFile) {
  TestRun run;
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10, "", 100), b = run.Save(epoch, 20, "", 101);
  std::filesystem::copy_file(run.Path(a + "/" + names::Sums(1)), run.Path(b + "/" + names::Sums(1)),
                             std::filesystem::copy_options::overwrite_existing);
  auto report = VerifyCheckpoint(run.dir(), b);
  ASSERT_EQ(report->faults.size(), 1u);
  EXPECT_THAT(report->faults[0].reason, HasSubstr("does not match its root in the index"));

  Sums sums =
      *DecodeSums(*ReadAll(run.Path(a + "/" + names::Sums(1)), 1 << 20));  // of a file as long as it is
  sums.blocks[0] = Hash128Of("others");
  ASSERT_TRUE(OverwriteFile(run.Path(a + "/" + names::Sums(1)), EncodeSums(sums)).ok());
  report = VerifyCheckpoint(run.dir(), a);
  ASSERT_EQ(report->faults.size(), 1u);
  EXPECT_THAT(report->faults[0].reason, HasSubstr("does not match its root in the index"));
}

TEST(Verify, OfWhatIsNotThereIsNotDamage) {
  TestRun run;
  EXPECT_EQ(VerifyCheckpoint(run.dir(), "step-000000000010.e1.00000000").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace cairn
