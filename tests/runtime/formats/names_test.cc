#include "runtime/formats/names.h"

#include <gtest/gtest.h>

namespace cairn::names {
namespace {

TEST(Names, AreSpelledAsTheDesignSays) {
  EXPECT_EQ(EpochFile(7), "EPOCH-00000007");
  EXPECT_EQ(AliveFile(7), "ALIVE-00000007");
  EXPECT_EQ(ParentFile(7), "PARENT-00000007");
  EXPECT_EQ((Attempt{1200, 7, "1f00c2d9"}.ToString()), "step-000000001200.e7.1f00c2d9");
  EXPECT_EQ(Dead("step-000000001200.e7.1f00c2d9"), "dead-step-000000001200.e7.1f00c2d9");
  EXPECT_EQ(Shard(1), "shard-00001-model-00001-of-00001.safetensors");
  EXPECT_EQ(Sums(123456), "shard-123456.sums");
  EXPECT_EQ(Strike("step-000000001200.e7.1f00c2d9"), "strikes/step-000000001200.e7.1f00c2d9.json");
  EXPECT_EQ(Lease("step-000000001200.e7.1f00c2d9", "00000001"),
            "leases/step-000000001200.e7.1f00c2d9.00000001");
  EXPECT_EQ(Removed(9, "step-000000001200.e7.1f00c2d9"), "removed-e9-step-000000001200.e7.1f00c2d9");
  EXPECT_EQ(StagingFolder({"00112233445566aa", 3}), ".staging-00112233445566aa-3");
  EXPECT_EQ(JournalPart({7, 12}), "journal-00000007-00012.jsonl");
}

TEST(Names, AreParsedBack) {
  const Attempt attempt{1200, 7, "1f00c2d9"};
  EXPECT_EQ(ParseEpochFile("EPOCH-00000007"), 7u);
  EXPECT_EQ(ParseEpochFile("EPOCH-4294967295"), 4294967295u);
  EXPECT_EQ(ParseLeftFolder("left-00000007"), 7u);
  EXPECT_EQ(ParseAttempt("step-000000001200.e7.1f00c2d9"), attempt);
  EXPECT_EQ(ParseAttempt("step-9223372036854775807.e1.1f00c2d9")->step, INT64_MAX);
  EXPECT_EQ(ParseDead("dead-step-000000001200.e7.1f00c2d9"), attempt);
  EXPECT_EQ(ParseShard("shard-00012-model-00001-of-00001.safetensors"), 12u);
  EXPECT_EQ(ParseSums("shard-00012.sums"), 12u);
  EXPECT_EQ(ParseStrike("step-000000001200.e7.1f00c2d9.json"), attempt);
  EXPECT_EQ(ParseLease("step-000000001200.e7.1f00c2d9.00000001"), attempt);
  EXPECT_EQ(ParseRemoved("removed-e9-step-000000001200.e7.1f00c2d9"), (Removal{9, attempt}));
  EXPECT_EQ(ParseStagingFolder(".staging-00112233445566aa-3"), (Staging{"00112233445566aa", 3}));
  EXPECT_EQ(ParseStagingFolder(".staging-00112233445566aa-0"), (Staging{"00112233445566aa", 0}));
  EXPECT_EQ(ParseJournalPart("journal-00000007-00012.jsonl"), (JournalLines{7, 12}));
  EXPECT_EQ(ParseJournalPart("journal-4294967295-123456.jsonl"), (JournalLines{4294967295, 123456}));
}

TEST(Names, OfOtherFormsAreNotOurs) {
  for (const char* name :
       {"EPOCH-7", "EPOCH-0000007", "EPOCH-000000007", "EPOCH-00000000", "EPOCH-4294967296", "EPOCH-0000000x",
        "EPOCH-", "EPOCH-00000007~", "epoch-00000007", "EPOCH-99999999999999999999"}) {
    EXPECT_FALSE(ParseEpochFile(name)) << name;
  }
  for (const char* name :
       {"step-1200.e7.1f00c2d9", "step-0000000001200.e7.1f00c2d9", "step-000000001200.e0.1f00c2d9",
        "step-000000001200.e07.1f00c2d9", "step-000000001200.e.1f00c2d9", "step-000000001200.e7.1f00c2d",
        "step-000000001200.e7.1F00C2D9", "step-000000001200.7.1f00c2d9", "step-000000001200.e7",
        "step-000000001200", "step-", "", "dead-step-000000001200.e7.1f00c2d9",
        "step-00000000-200.e7.1f00c2d9", "step-9223372036854775808.e1.1f00c2d9",
        "step-000000001200.e7.1f00c2d9.tmp"}) {
    EXPECT_FALSE(ParseAttempt(name)) << name;
  }
  EXPECT_FALSE(ParseShard("shard-00000-model-00001-of-00001.safetensors"));
  EXPECT_FALSE(ParseShard("model-00001-of-00001.safetensors"));
  EXPECT_FALSE(ParseSums("shard-.sums"));
  EXPECT_FALSE(ParseLease("step-000000001200.e7.1f00c2d9"));
  for (const char* name :
       {"removed-step-000000001200.e7.1f00c2d9", "removed-e0-step-000000001200.e7.1f00c2d9",
        "removed-e09-step-000000001200.e7.1f00c2d9", "removed-e9-step-000000001200.e7", "removed-e9-",
        "removed-e9", "removed-e9-dead-step-000000001200.e7.1f00c2d9",
        "dead-step-000000001200.e7.1f00c2d9"}) {
    EXPECT_FALSE(ParseRemoved(name)) << name;
  }
  for (const char* name :
       {"staging-00112233445566aa-3", ".staging-00112233445566aa", ".staging-00112233445566aa-",
        ".staging-00112233445566aa-03", ".staging-00112233445566AA-3", ".staging-00112233445566a-3",
        ".staging--3", ".staging-00112233445566aa-4294967296", ".staging-00112233445566aa-3.tmp"}) {
    EXPECT_FALSE(ParseStagingFolder(name)) << name;
  }
  for (const char* name :
       {"journal.jsonl", "journal-00000007.jsonl", "journal-00000007-00000.jsonl",
        "journal-00000000-00001.jsonl", "journal-7-00001.jsonl", "journal-00000007-1.jsonl",
        "journal-00000007-00001.jsonl~", "journal-00000007-00001-00001.jsonl"}) {
    EXPECT_FALSE(ParseJournalPart(name)) << name;
  }
}

TEST(Names, OfTagsCannotLeaveTheirFolder) {
  EXPECT_TRUE(IsValidTag("best-v1.0+lr=3e_4"));
  EXPECT_FALSE(IsValidTag(""));
  EXPECT_FALSE(IsValidTag("."));
  EXPECT_FALSE(IsValidTag("../RUN"));
  EXPECT_FALSE(IsValidTag("a/b"));
  EXPECT_FALSE(IsValidTag("a b"));
  EXPECT_FALSE(IsValidTag(std::string(101, 'a')));
}

}  // namespace
}  // namespace cairn::names
