// What differs where a run lies in a bucket: nothing can be renamed, answers get lost, and a stale writer is fenced by the line of parents alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <utility>

#include "runtime/catalog/lives.h"
#include "runtime/catalog/retention.h"
#include "runtime/catalog/target.h"
#include "tests/runtime/catalog/test_run.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Fate = FaultyStore::Fate;

constexpr char kClaim[] = "00112233445566aa";

class Bucket : public ::testing::Test {
 protected:
  // Of the next call of this name, on a key that ends so; afterwards all is well. `before` runs first.
  void Next(std::string call, std::string key_end, Fate fate, std::function<void()> before = nullptr) {
    const std::lock_guard lock(mutex_);
    call_ = std::move(call);
    key_end_ = std::move(key_end);
    fate_ = fate;
    before_ = std::move(before);
  }
  bool came() const { return call_.empty(); }
  std::string Key(const std::string& name) const { return "a/run/" + name; }

  const std::shared_ptr<MemoryStore> memory_ = std::make_shared<MemoryStore>();
  const StoreInUse in_use_{
      std::make_shared<FaultyStore>(memory_, [this](std::string_view call, const std::string& key) {
        Fate fate = Fate::kPass;
        std::function<void()> before;
        {
          const std::lock_guard lock(mutex_);
          if (call != call_ || !key.ends_with(key_end_)) return fate;
          call_.clear();
          fate = fate_;
          before = std::exchange(before_, nullptr);
        }
        if (before) before();  // it may name another call
        return fate;
      })};
  std::mutex mutex_;  // calls come from several threads; it guards
  std::string call_, key_end_;
  Fate fate_ = Fate::kPass;
  std::function<void()> before_;
  TestRun run{"s3://bucket/a/run"};
};

TEST_F(Bucket, HoldsARunUnderTheNamesOfItsFiles) {
  const uint32_t epoch = run.Claim();
  const std::string name = run.Save(epoch, 10);
  std::vector<std::string> keys;
  for (const auto& [key, bytes] : memory_->objects()) keys.push_back(key);
  EXPECT_THAT(keys,
              ElementsAre("a/run/CURRENT", "a/run/EPOCH-00000001", "a/run/RUN", Key(name) + "/blobs.cbor",
                          Key(name) + "/index.bin", Key(name) + "/manifest.json",
                          Key(name) + "/shard-00001-model-00001-of-00001.safetensors",
                          Key(name) + "/shard-00001.sums"));
}

TEST_F(Bucket, IsNamedLikeADirectory) {
  const std::string name = run.Save(run.Claim(), 10);
  for (const std::string& rest :
       {std::string(), std::string("//"), std::string("@10"), "@" + name, "/" + name + "/"}) {
    const std::string text = "s3://bucket//a/run" + rest;
    const auto chosen = ChooseCheckpoint(text);
    ASSERT_TRUE(chosen.ok()) << text << ": " << chosen.status().message();
    EXPECT_EQ(chosen->dir.path(), "s3://bucket/a/run") << text;
    EXPECT_EQ(chosen->checkpoint.name, name) << text;
  }
  const Status none = ChooseCheckpoint("s3://bucket/a").status();
  EXPECT_EQ(none.code(), Code::kNotFound);
  EXPECT_THAT(none.message(), HasSubstr("holds no file RUN"));
}

TEST_F(Bucket, GivesAnEpochToOneOfTwoThatClaimAtOnce) {
  Next("PutNew", "EPOCH-00000001", Fate::kPass,
       [&] { ASSERT_TRUE(ClaimEpoch(run.dir(), 0, HolderOf("77")).ok()); });
  const Status second = ClaimEpoch(run.dir(), 0, HolderOf("78")).status();
  EXPECT_EQ(second.code(), Code::kBusy);
  EXPECT_THAT(second.message(), HasSubstr("job 77"));
}

TEST_F(Bucket, KnowsItsOwnClaimWhenTheAnswerWasLost) {
  Next("PutNew", "EPOCH-00000001", Fate::kTwice);
  EXPECT_EQ(*ClaimEpoch(run.dir(), 0, HolderOf("77")), 1u);
}

TEST_F(Bucket, KnowsItsOwnManifestWhenTheAnswerWasLost) {
  const Attempt attempt = run.Write(run.Claim(), 10);
  Next("PutNew", "manifest.json", Fate::kTwice);
  ASSERT_TRUE(run.Commit(attempt).ok());
  EXPECT_TRUE(came());
  EXPECT_THAT(run.CandidateNames(), ElementsAre(attempt.name.ToString()));
}

// Whatever call fails, and whether it was done or not: the older checkpoint counts, or the new one, whole, and the next life goes on from it.
TEST_F(Bucket, HoldsTheOldOrTheNewCheckpointAfterAFaultAtAnyCallOfACommit) {
  const uint32_t epoch = run.Claim();
  std::string newest = run.Save(epoch, 10);
  int64_t step = 20;
  for (const Fate fate : {Fate::kFail, Fate::kLoseAnswer}) {
    for (const auto& [call, key] :
         std::vector<std::pair<std::string, std::string>>{{"ListFolder", "a/run/"},
                                                          {"Put", "index.bin"},
                                                          {"Put", "blobs.cbor"},
                                                          {"PutNew", "manifest.json"}}) {
      const Attempt attempt = run.Write(epoch, step, 10);
      Next(call, key, fate);
      EXPECT_EQ(run.Commit(attempt).status().code(), Code::kUnavailable) << call << " " << key;
      EXPECT_TRUE(came());
      const bool there = call == "PutNew" && fate == Fate::kLoseAnswer;
      EXPECT_EQ(run.CandidateNames().front(), there ? attempt.name.ToString() : newest) << call << " " << key;
      EXPECT_TRUE(LoadCheckpoint(run.dir(), run.CandidateNames().front()).ok());
      ASSERT_TRUE(Abandon(run.dir(), attempt).ok());  // it is none as far as this life knows
      EXPECT_EQ(run.CandidateNames().front(), newest);
      newest = run.Save(epoch, step + 5);
      step += 10;
    }
  }
  // The hint is no part of it.
  const Attempt attempt = run.Write(epoch, step, 10);
  Next("Put", "CURRENT", Fate::kFail);
  EXPECT_TRUE(run.Commit(attempt).ok());
}

TEST_F(Bucket, IsClearedOfDeadAttemptsAndOfUploadsThatNobodyFinishes) {
  const uint32_t first = run.Claim();
  const std::string checkpoint = run.Save(first, 10);
  const std::string dead = run.Write(first, 20).name.ToString();
  const auto upload = memory_->Upload(Key(dead) + "/shard-00002", 100);
  const auto unseen = memory_->Upload(Key("step-000000000030.e1.00000000/shard-00001"), 100);
  const auto of_another_run = memory_->Upload(Key("another/step-1/shard"), 100);
  const std::string other = "step-2-of-the-pipeline/step-000000000030.e1.00000000/shard-00001";
  const auto of_a_run_below = memory_->Upload(Key(other), 100);
  const std::string newer = "step-000000000030.e3.00000000/shard-00001";
  const auto of_a_newer_life = memory_->Upload(Key(newer), 100);
  ASSERT_TRUE(upload.ok() && unseen.ok() && of_another_run.ok() && of_a_run_below.ok() &&
              of_a_newer_life.ok());
  const auto taken = TakeOver(run.dir(), run.Claim(), kClaim);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_THAT(taken->dead, ElementsAre(dead));
  EXPECT_FALSE(run.Has(dead));
  EXPECT_TRUE(LoadCheckpoint(run.dir(), checkpoint).ok());
  EXPECT_THAT(memory_->uploads(), ElementsAre(Key("another/step-1/shard"), Key(newer), Key(other)));
}

TEST_F(Bucket, IsNoRunAsAWhole) {
  for (const std::string path : {"s3://bucket", "s3://bucket/"}) {
    const Status whole = RunDirectory::Open(path, "test").status();
    EXPECT_EQ(whole.code(), Code::kInvalid);
    EXPECT_THAT(whole.message(), HasSubstr("give s3://BUCKET/PREFIX"));
    EXPECT_EQ(RunDirectory::OpenExisting(path).status().code(), Code::kInvalid);
  }
  EXPECT_FALSE(memory_->objects().contains("RUN"));
}

// A proxy's 404, say.
TEST_F(Bucket, LosesNothingToAWrongNotFound) {
  const std::string checkpoint = run.Save(run.Claim(), 10);
  Next("Bytes", "manifest.json", Fate::kMissing);
  ASSERT_TRUE(TakeOver(run.dir(), run.Claim(), kClaim).ok());
  EXPECT_TRUE(LoadCheckpoint(run.dir(), checkpoint).ok());
}

TEST_F(Bucket, IsNotTakenOverWhileItCannotBeListed) {
  const std::string dead = run.Write(run.Claim(), 10).name.ToString();
  const uint32_t second = run.Claim();
  Next("List", dead + "/", Fate::kFail);
  EXPECT_EQ(TakeOver(run.dir(), second, kClaim).status().code(), Code::kUnavailable);
  EXPECT_TRUE(came());
  EXPECT_TRUE(run.Has(dead));
}

TEST_F(Bucket, KeepsTheHintOfWhoeverMayHaveOvertakenALife) {
  const uint32_t first = run.Claim();
  const std::string before = run.Save(first, 10);
  const Attempt attempt = run.Write(first, 20);
  Next("PutNew", "manifest.json", Fate::kPass, [&] { Next("ListFolder", "a/run/", Fate::kFail); });
  EXPECT_TRUE(run.Commit(attempt).ok());
  EXPECT_TRUE(came());
  EXPECT_EQ(memory_->objects().at(Key("CURRENT")), before + "\n");
}

TEST_F(Bucket, WhoseHintCannotBeReadIsNotListedAsOneWithoutCheckpoints) {
  run.Claim();
  Next("Get", "CURRENT", Fate::kFail);
  EXPECT_EQ(ListCheckpoints(run.dir()).status().code(), Code::kUnavailable);
  Next("Get", "CURRENT", Fate::kMissing);
  EXPECT_TRUE(ListCheckpoints(run.dir()).ok());
}

TEST_F(Bucket, IsNotAskedForTheNextManifestWhenItDoesNotAnswerForOne) {
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10);
  run.Save(epoch, 20);
  Next("Get", a + "/manifest.json", Fate::kFail, [&] { Next("Get", "manifest.json", Fate::kFail); });
  EXPECT_EQ(ListCheckpoints(run.dir()).status().code(), Code::kUnavailable);
  EXPECT_FALSE(came());
}

// A stale writer is overtaken just before one of its calls: by a life that claims, takes over, restores and says so.
class Overtaken : public Bucket, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(, Overtaken,
                         ::testing::Values("index.bin", "blobs.cbor", "manifest.json", "CURRENT"),
                         [](const auto& param) {
                           const std::string object = param.param;
                           return object.substr(0, object.find('.'));
                         });

TEST_P(Overtaken, WritersLeaveNothingThatALaterLifeGoesOnFrom) {
  const uint32_t first = run.Claim();
  const std::string before = run.Save(first, 10);
  const Attempt attempt = run.Write(first, 20);
  const std::string late = attempt.name.ToString(), call = GetParam();
  const bool committed = call == "CURRENT";  // before the new life looks
  uint32_t second = 0;
  Next(call == "manifest.json" ? "PutNew" : "Put", call, Fate::kPass, [&] {
    second = run.Claim();
    ASSERT_TRUE(TakeOver(run.dir(), second, kClaim).ok());
    ASSERT_TRUE(PublishParent(run.dir(), second, committed ? late : before).ok());
  });
  const Status done = run.Commit(attempt).status();
  EXPECT_TRUE(came());
  EXPECT_EQ(done.code(), committed ? Code::kOk : Code::kFenced) << done.message();
  EXPECT_EQ(run.CandidateNames().front(), committed ? late : before);
  EXPECT_TRUE(LoadCheckpoint(run.dir(), run.CandidateNames().front()).ok());
  // The next checkpoint of the new life is on the line, whatever the stale one has left.
  const std::string next = run.Save(second, 15, before);
  EXPECT_EQ(run.CandidateNames().front(), next);
  // The life after it is rid of the rest.
  const uint32_t third = run.Claim();
  ASSERT_TRUE(TakeOver(run.dir(), third, kClaim).ok());
  EXPECT_EQ(run.CandidateNames().front(), next);
}

// The window that no rename closes: the manifest lands when the new life has taken over, and has not said yet from where it goes on.
TEST_F(Bucket, AManifestOverRemovedObjectsIsNoStateToGoOnFrom) {
  const uint32_t first = run.Claim();
  const std::string before = run.Save(first, 10);
  const Attempt attempt = run.Write(first, 20);
  uint32_t second = 0;
  Next("PutNew", "manifest.json", Fate::kPass, [&] {
    second = run.Claim();
    ASSERT_TRUE(TakeOver(run.dir(), second, kClaim).ok());
  });
  EXPECT_EQ(run.Commit(attempt).status().code(), Code::kFenced);
  EXPECT_EQ(LoadCheckpoint(run.dir(), attempt.name.ToString()).status().code(), Code::kDamage);
  ASSERT_TRUE(PublishParent(run.dir(), second, before).ok());
  EXPECT_THAT(run.CandidateNames(), ElementsAre(before));
}

// It lands between the list of what is removed and the removal.
TEST_F(Bucket, AManifestThatLandsWhileItsAttemptIsRemovedGoesWithIt) {
  const uint32_t first = run.Claim();
  const Attempt attempt = run.Write(first, 20);
  const uint32_t second = run.Claim();
  Next("Remove", "", Fate::kPass,
       [&] { ASSERT_TRUE(memory_->Put(Key(attempt.name.ToString() + "/manifest.json"), "{}").ok()); });
  ASSERT_TRUE(TakeOver(run.dir(), second, kClaim).ok());
  EXPECT_TRUE(came());
  EXPECT_FALSE(run.Has(attempt.name.ToString()));
}

// A pruner is overtaken between its fence and the removal of the manifest.
TEST_F(Bucket, GetsTheManifestBackWhenItsPrunerWasOvertaken) {
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 10);
  Next("Remove", "manifest.json", Fate::kPass, [&] { run.Claim(); });
  EXPECT_EQ(PruneCheckpoint(run.dir(), first, a).code(), Code::kFenced);
  EXPECT_TRUE(came());
  EXPECT_TRUE(LoadCheckpoint(run.dir(), a).ok());
}

// Of a checkpoint whose pruner is overtaken once it has removed the manifest: the new life takes it for an attempt.
TEST_F(Bucket, GetsNoManifestBackOverObjectsThatANewerLifeHasRemoved) {
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 10), b = run.Save(first, 20);
  Next("Remove", a + "/manifest.json", Fate::kPass, [&] {
    Next("ListFolder", "a/run/", Fate::kPass,
         [&] { ASSERT_TRUE(TakeOver(run.dir(), run.Claim(), kClaim).ok()); });
  });
  EXPECT_EQ(PruneCheckpoint(run.dir(), first, a).code(), Code::kFenced);
  EXPECT_TRUE(came());
  EXPECT_FALSE(run.Has(a));
  EXPECT_THAT(run.CandidateNames(), ElementsAre(b));
}

TEST_F(Bucket, LosesAManifestThatIsPutBackWhileANewerLifeRemovesTheRest) {
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 10), b = run.Save(first, 20);
  Next("Remove", a + "/manifest.json", Fate::kPass, [&] {
    Next("ListFolder", "a/run/", Fate::kPass, [&] {
      const uint32_t second = run.Claim();
      Next("Put", a + "/manifest.json", Fate::kPass,
           [&, second] { ASSERT_TRUE(TakeOver(run.dir(), second, kClaim).ok()); });
    });
  });
  EXPECT_EQ(PruneCheckpoint(run.dir(), first, a).code(), Code::kFenced);
  EXPECT_TRUE(came());
  EXPECT_FALSE(run.Has(a));
  EXPECT_THAT(run.CandidateNames(), ElementsAre(b));
}

TEST_F(Bucket, KeepsTheManifestOfWhatIsBeingRead) {
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 10);
  const auto lease = ReadLease::Take(run.dir(), a);
  ASSERT_TRUE(lease.ok()) << lease.status().message();
  Next("Remove", a + "/manifest.json", Fate::kPass);
  EXPECT_EQ(PruneCheckpoint(run.dir(), first, a).code(), Code::kBusy);
  EXPECT_FALSE(came());
}

TEST_F(Bucket, KeepsALeaseThatCannotBeRead) {
  const std::string a = run.Save(run.Claim(), 10);
  const auto lease = ReadLease::Take(run.dir(), a);
  ASSERT_TRUE(lease.ok()) << lease.status().message();
  const auto at = [](int second) { return BeatWatch::Time(std::chrono::seconds(second)); };
  LeaseWatch watch;
  EXPECT_THAT(*watch.Leased(run.dir(), at(0)), ElementsAre(a));
  Next("Get", "", Fate::kFail);
  EXPECT_THAT(*watch.Leased(run.dir(), at(40)), ElementsAre(a));
  EXPECT_TRUE(came());
  EXPECT_THAT(*watch.Leased(run.dir(), at(50)), ElementsAre(a));
  EXPECT_TRUE(watch.Leased(run.dir(), at(80))->empty());
}

TEST_F(Bucket, FindsNothingOfACheckpointWhoseRemovalWasCutShort) {
  const uint32_t first = run.Claim();
  const std::string a = run.Save(first, 10), b = run.Save(first, 20);
  Next("Remove", a + "/manifest.json", Fate::kPass, [&] { Next("List", a + "/", Fate::kFail); });
  EXPECT_EQ(PruneCheckpoint(run.dir(), first, a).code(), Code::kUnavailable);
  EXPECT_THAT(run.CandidateNames(), ElementsAre(b));
  ASSERT_TRUE(TakeOver(run.dir(), run.Claim(), kClaim).ok());
  EXPECT_FALSE(run.Has(a));
  EXPECT_TRUE(LoadCheckpoint(run.dir(), b).ok());
}

TEST_F(Bucket, KeepsTheJournalOfEachLifeApartAndTellsAllOfThem) {
  const std::string note(1000, 'x');
  for (const uint32_t epoch : {1u, 2u}) {
    const RunDirectory dir = *RunDirectory::OpenExisting(run.dir().path());  // a life's own
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(dir.Journal(epoch, R"({"event":"saved","epoch":)" + std::to_string(epoch) + R"(,"step":)" +
                                         std::to_string(i) + R"(,"trigger":")" + note + "\"}")
                      .ok());
    }
  }
  EXPECT_TRUE(run.dir().Journal(0, "{}").ok());  // of a life that owns nothing there
  EXPECT_TRUE(run.Has("journal-00000001-00001.jsonl"));
  EXPECT_TRUE(run.Has("journal-00000001-00002.jsonl"));
  EXPECT_FALSE(run.Has("journal-00000001-00003.jsonl"));
  const auto lives = ReadLives(run.dir());
  ASSERT_TRUE(lives.ok()) << lives.status().message();
  ASSERT_EQ(lives->size(), 2u);
  for (const LifeStory& life : *lives) {
    EXPECT_EQ(life.saves, 100);
    EXPECT_EQ(life.last_saved_step, 99);
  }
}

TEST_F(Bucket, ThatCannotBeReachedIsNoEmptyOne) {
  run.Claim();
  Next("Get", "RUN", Fate::kFail);
  EXPECT_EQ(RunDirectory::Open(run.dir().path(), "test").status().code(), Code::kUnavailable);
  Next("ListFolder", "a/run/", Fate::kFail);
  EXPECT_EQ(NewestEpoch(run.dir()).status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace cairn
