// A mirror is a run that a job goes on from; nothing half-copied, damaged or of two mirrorers ever counts in it.
#include "runtime/mirror/mirror.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/catalog/event.h"
#include "runtime/catalog/journal.h"
#include "runtime/catalog/marks.h"
#include "runtime/catalog/verify.h"
#include "runtime/session/life.h"
#include "tests/runtime/catalog/test_run.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;
using Fate = FaultyStore::Fate;

constexpr uint64_t kMiB = 1 << 20;

// What a mirrorer that can be stopped, or has a store with faults, needs to tell.
struct Told {
  std::vector<Copied> copied;
  std::vector<std::pair<std::string, Status>> passed_over;
  std::vector<std::string> lines;
};

MirrorOptions Options(Told* told) {
  MirrorOptions options;
  options.say = [told](const std::string& line) { told->lines.push_back(line); };
  options.copied = [told](const Copied& one) { told->copied.push_back(one); };
  options.passed_over = [told](const std::string& name, const Status& why) {
    told->passed_over.emplace_back(name, why);
  };
  return options;
}

Status CopyTo(const TestRun& run, const std::string& to, const std::vector<std::string>& names,
              Told* told = nullptr) {
  Told unused;
  return Mirror(run.dir().path(), to, Options(told != nullptr ? told : &unused)).Copy(names);
}

RunDirectory OpenRun(const std::string& path) {
  auto dir = RunDirectory::OpenExisting(path);
  EXPECT_TRUE(dir.ok()) << dir.status().message();
  return *dir;
}

Listing ListOf(const std::string& path) {
  auto listing = ListCheckpoints(OpenRun(path));
  EXPECT_TRUE(listing.ok()) << listing.status().message();
  return listing.ok() ? *std::move(listing) : Listing();
}

std::vector<int64_t> CandidateSteps(const std::string& path) {
  std::vector<int64_t> steps;
  for (const Checkpoint& c : Candidates(ListOf(path))) steps.push_back(c.id.step);
  return steps;
}

// As --checkpoint-dir=PATH begins.
Result<std::unique_ptr<Life>> BeginLifeIn(const std::string& path) {
  LifeOptions options;
  options.dir = path;
  options.name = "main";
  options.self = HolderOf("99");
  options.self.claim = "00112233445566ff";
  options.ask_slurm = [](const Identity&) { return HolderInSlurm::kUnknown; };
  options.say = [](const std::string&) {};
  return Life::Begin(options);
}

// From a folder, into a folder or a bucket.
class AMirror : public ::testing::TestWithParam<bool> {
 protected:
  std::string Place(const std::string& name = "copy") {
    return (GetParam() ? std::string("s3://archive/lab/") : temp_ / "archive/") + name;
  }
  // Everything in the place that is no mark of a claim.
  std::vector<std::string> Attempts() {
    std::vector<std::string> names;
    const auto entries = ListDirectory(Place());
    EXPECT_TRUE(entries.ok()) << entries.status().message();
    for (const std::string& name : *entries) {
      if (name.find("step-") != std::string::npos) names.push_back(name);
    }
    return names;
  }

  const std::shared_ptr<MemoryStore> memory_ = std::make_shared<MemoryStore>();
  // What becomes of a request; all is well unless a test says otherwise.
  FaultyStore::Decide decide_ = [](std::string_view, const std::string&) { return Fate::kPass; };
  const StoreInUse in_use_{std::make_shared<FaultyStore>(
      memory_, [this](std::string_view call, const std::string& key) { return decide_(call, key); })};
  TempDir temp_;
  TestRun run;
};
INSTANTIATE_TEST_SUITE_P(Tiers, AMirror, ::testing::Bool(), TierName);

TEST_P(AMirror, IsTheSameRunWithTheSameBytes) {
  const std::string first = run.Save(run.Claim(), 10, "", 21 * kMiB + 5);
  Told told;
  ASSERT_TRUE(CopyTo(run, Place(), {first}, &told).ok());
  ASSERT_THAT(told.copied, SizeIs(1));
  EXPECT_EQ(told.copied[0].from, first);
  EXPECT_FALSE(told.copied[0].was_there);
  const RunDirectory copy = OpenRun(Place());
  EXPECT_EQ(copy.info(), run.dir().info());
  const std::string name = told.copied[0].name;
  EXPECT_THAT(name, StartsWith("step-000000000010.e1."));
  EXPECT_NE(name, first);  // a name is never used twice, not in a mirror either
  for (const char* file : {"manifest.json", "index.bin", "blobs.cbor", "shard-00001.sums",
                           "shard-00001-model-00001-of-00001.safetensors"}) {
    EXPECT_EQ(*ReadAll(copy.PathOf(name, file), 64 * kMiB),
              *ReadAll(run.dir().PathOf(first, file), 64 * kMiB))
        << file;
  }
  const auto report = VerifyCheckpoint(copy, name);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(report->faults, IsEmpty());
  EXPECT_EQ(*ReadAll(copy.PathOf("CURRENT"), 100), name + "\n");
  EXPECT_THAT(*ListDirectory(run.Path("leases")), IsEmpty());
}

TEST_P(AMirror, CopiesNothingTwice) {
  const uint32_t epoch = run.Claim();
  const std::string first = run.Save(epoch, 10), second = run.Save(epoch, 20);
  ASSERT_TRUE(CopyTo(run, Place(), {first}).ok());
  Told told;
  ASSERT_TRUE(CopyTo(run, Place(), {first, second}, &told).ok());
  ASSERT_THAT(told.copied, SizeIs(2));
  EXPECT_TRUE(told.copied[0].was_there);
  EXPECT_FALSE(told.copied[1].was_there);
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(20, 10));
  const auto claims = [&] { return (*NewestEpoch(OpenRun(Place())))->epoch; };
  const uint32_t before = claims();
  ASSERT_TRUE(CopyTo(run, Place(), {first, second}).ok());
  EXPECT_EQ(claims(), before);  // what is all there needs no claim
}

TEST_P(AMirror, TakesAnOlderCheckpointLaterAndKeepsTheOrder) {
  const uint32_t epoch = run.Claim();
  const std::string first = run.Save(epoch, 10), second = run.Save(epoch, 20);
  ASSERT_TRUE(CopyTo(run, Place(), {second}).ok());
  const std::string current = *ReadAll(Place() + "/CURRENT", 100);
  ASSERT_TRUE(CopyTo(run, Place(), {first}).ok());
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(20, 10));
  EXPECT_EQ(*ReadAll(Place() + "/CURRENT", 100), current);
}

TEST_P(AMirror, HasTheLineOfTheRun) {
  const uint32_t one = run.Claim();
  const std::string ten = run.Save(one, 10), twenty = run.Save(one, 20);
  ASSERT_TRUE(CopyTo(run, Place(), {ten, twenty}).ok());
  // The next life goes on from step 10, and saves; so 20 is on a branch that was left.
  const uint32_t two = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), two, ten).ok());
  const std::string thirty = run.Save(two, 30, ten);
  ASSERT_TRUE(CopyTo(run, Place(), {thirty}).ok());
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(30, 10));
  // A life of which no checkpoint was copied counts as well.
  const uint32_t three = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), three, ten).ok());
  const uint32_t four = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), four, ten).ok());
  const std::string forty = run.Save(four, 40, ten);
  ASSERT_TRUE(CopyTo(run, Place(), {forty}).ok());
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(40, 10));
}

TEST_P(AMirror, BringsTagsAndTheEndOfTheRun) {
  const uint32_t epoch = run.Claim();
  const std::string first = run.Save(epoch, 10), second = run.Save(epoch, 20);
  ASSERT_TRUE(SetTag(run.dir(), "best", first).ok());
  ASSERT_TRUE(CopyTo(run, Place(), {first, second}).ok());
  EXPECT_FALSE(*IsFinished(OpenRun(Place()), ListOf(Place())));
  // Also behind the last copy.
  ASSERT_TRUE(SetTag(run.dir(), "last", second).ok());
  ASSERT_TRUE(WriteFinished(run.dir(), second).ok());
  ASSERT_TRUE(CopyTo(run, Place(), {second}).ok());
  const auto tags = *ReadTags(OpenRun(Place()));
  const Listing listing = ListOf(Place());
  EXPECT_EQ(tags.at("best"), listing.checkpoints[1].name);
  EXPECT_EQ(tags.at("last"), listing.checkpoints[0].name);
  EXPECT_TRUE(*IsFinished(OpenRun(Place()), listing));
}

TEST_P(AMirror, IsGoneOnFromAndThenLeftAlone) {
  const uint32_t epoch = run.Claim();
  const std::string first = run.Save(epoch, 10);
  ASSERT_TRUE(CopyTo(run, Place(), {first}).ok());
  auto life = BeginLifeIn(Place());
  ASSERT_TRUE(life.ok()) << life.status().message();
  EXPECT_EQ((*life)->epoch(), 2U);  // past all that was copied
  ASSERT_TRUE((*life)->End().ok());
  const std::string second = run.Save(epoch, 20);
  const Status refused = CopyTo(run, Place(), {second});
  EXPECT_EQ(refused.code(), Code::kMismatch);
  EXPECT_THAT(refused.message(), HasSubstr("a run goes on there, of job 99"));
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(10));
}

TEST_P(AMirror, GivesALifeAHigherEpochThanTheRunHas) {
  run.Claim();
  run.Claim();
  const uint32_t third = run.Claim();
  ASSERT_EQ(third, 3U);
  ASSERT_TRUE(CopyTo(run, Place(), {run.Save(third, 10)}).ok());
  auto life = BeginLifeIn(Place());
  ASSERT_TRUE(life.ok()) << life.status().message();
  EXPECT_EQ((*life)->epoch(), 4U);
}

TEST_P(AMirror, RefusesThePlaceOfAnotherRunAndItsOwn) {
  const std::string first = run.Save(run.Claim(), 10);
  ASSERT_TRUE(RunDirectory::Open(Place("other"), "other").ok());
  const Status other = CopyTo(run, Place("other"), {first});
  EXPECT_EQ(other.code(), Code::kMismatch);
  EXPECT_THAT(other.message(), HasSubstr("holds another run"));
  for (const std::string& inside : {run.dir().path(), run.Path("copy"), run.dir().path() + "/a/../b"})
    EXPECT_EQ(CopyTo(run, inside, {first}).code(), Code::kInvalid) << inside;
  EXPECT_TRUE(MayMirror(run.dir().path(), run.dir().path() + "-copy").ok());
}

TEST_P(AMirror, IsNotMadeInAPlaceThatHoldsSomethingElse) {
  const std::string name = run.Save(run.Claim(), 10);
  ASSERT_TRUE(MakeDirectories(Place()).ok());
  ASSERT_TRUE(CreateExclusive(Place() + "/CURRENT", "of a database", FileMode()).ok());
  const Status refused = CopyTo(run, Place(), {name});
  EXPECT_EQ(refused.code(), Code::kExists) << refused.message();
  EXPECT_THAT(refused.message(), HasSubstr("no run and not empty (CURRENT)"));
  EXPECT_EQ(*ListDirectory(Place()), std::vector<std::string>{"CURRENT"});
}

// Else a life that claims the next number meanwhile would not be met.
TEST_P(AMirror, ClaimsEveryNumberUpToThatOfTheRun) {
  for (int lives = 0; lives < 3; ++lives) run.Claim();
  const std::string name = run.Save(run.Claim(), 10);
  ASSERT_TRUE(CopyTo(run, Place(), {name}).ok());
  std::vector<std::string> claims;
  const auto entries = ListDirectory(Place());
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  for (const std::string& entry : *entries) {
    if (entry.starts_with("EPOCH-")) claims.push_back(entry);
  }
  EXPECT_THAT(claims,
              UnorderedElementsAre("EPOCH-00000001", "EPOCH-00000002", "EPOCH-00000003", "EPOCH-00000004"));
}

TEST_P(AMirror, NeverTakesWhatIsDamaged) {
  const uint32_t epoch = run.Claim();
  const std::string good = run.Save(epoch, 10), bad = run.Save(epoch, 20, "", 9 * kMiB);
  run.FlipByte(bad + "/" + names::Shard(1), 5 * kMiB);
  Told told;
  ASSERT_TRUE(CopyTo(run, Place(), {good, bad}, &told).ok());
  ASSERT_THAT(told.passed_over, SizeIs(1));
  EXPECT_EQ(told.passed_over[0].first, bad);
  EXPECT_EQ(told.passed_over[0].second.code(), Code::kDamage);
  EXPECT_THAT(told.passed_over[0].second.message(),
              HasSubstr(bad + "/" + names::Shard(1) + ": block 1 does not match"));
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(10));
  EXPECT_THAT(Attempts(), SizeIs(1));
  EXPECT_THAT(memory_->uploads(), IsEmpty());
  EXPECT_THAT(*ReadJournal(run.dir()), HasSubstr("\"event\":\"copy_failed\""));
}

TEST_P(AMirror, TakesTheOthersWhereOneIsDamagedOrGone) {
  const uint32_t epoch = run.Claim();
  const std::string damaged = run.Save(epoch, 10), gone = run.Save(epoch, 20), torn = run.Save(epoch, 30),
                    good = run.Save(epoch, 40);
  run.FlipByte(damaged + "/index.bin", 40);
  run.FlipByte(torn + "/" + names::Shard(1), 20);
  ASSERT_TRUE(PruneCheckpoint(run.dir(), epoch, gone).ok());
  Told told;
  const Status copied = CopyTo(run, Place(), {damaged, gone, torn, good}, &told);
  ASSERT_TRUE(copied.ok()) << copied.message();
  std::map<std::string, Code> passed_over;
  for (const auto& [name, why] : told.passed_over) passed_over[name] = why.code();
  EXPECT_EQ(passed_over, (std::map<std::string, Code>{
                             {damaged, Code::kDamage}, {torn, Code::kDamage}, {gone, Code::kNotFound}}));
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(40));
}

TEST_P(AMirror, KeepsAllThatItWillCopyFromBeingPrunedMeanwhile) {
  const uint32_t epoch = run.Claim();
  const std::string first = run.Save(epoch, 10), second = run.Save(epoch, 20);
  Told told;
  MirrorOptions options = Options(&told);
  Status pruned;
  options.under_way = [&](const Checkpoint& what, uint64_t, uint64_t) {
    if (what.name == first) pruned = PruneCheckpoint(run.dir(), epoch, second);
  };
  ASSERT_TRUE(Mirror(run.dir().path(), Place(), options).Copy({first, second}).ok());
  EXPECT_EQ(pruned.code(), Code::kBusy);
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(20, 10));
}

// What the run has left behind, steps 20 of its first life, is not what a restart falls back to behind the copy of 40.
TEST_P(AMirror, KnowsTheLineBeforeTheCopyCounts) {
  const uint32_t one = run.Claim();
  const std::string ten = run.Save(one, 10), twenty = run.Save(one, 20);
  ASSERT_TRUE(CopyTo(run, Place(), {ten, twenty}).ok());
  const uint32_t two = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), two, ten).ok());
  const std::string thirty = run.Save(two, 30, ten);
  const uint32_t three = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), three, thirty).ok());
  const std::string forty = run.Save(three, 40, thirty);
  Told told;
  MirrorOptions options = Options(&told);
  std::vector<int64_t> before;
  options.under_way = [&](const Checkpoint&, uint64_t, uint64_t) { before = CandidateSteps(Place()); };
  options.copied = [&](const Copied&) { EXPECT_THAT(CandidateSteps(Place()), ElementsAre(40, 10)); };
  ASSERT_TRUE(Mirror(run.dir().path(), Place(), options).Copy({forty}).ok());
  EXPECT_THAT(before, ElementsAre(10));
}

TEST_P(AMirror, IsNeverWithoutACheckpointToGoOnFrom) {
  const uint32_t one = run.Claim();
  const std::string ten = run.Save(one, 10), twenty = run.Save(one, 20);
  ASSERT_TRUE(CopyTo(run, Place(), {twenty}).ok());
  const uint32_t two = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), two, ten).ok());
  const std::string thirty = run.Save(two, 30, ten);
  Told told;
  MirrorOptions options = Options(&told);
  std::vector<int64_t> before;
  options.under_way = [&](const Checkpoint&, uint64_t, uint64_t) { before = CandidateSteps(Place()); };
  ASSERT_TRUE(Mirror(run.dir().path(), Place(), options).Copy({thirty}).ok());
  EXPECT_THAT(before, ElementsAre(20));
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(30));
}

// A run's folder that was copied, and both went on.
class ForkedRun : public AMirror {
 protected:
  ForkedRun() {
    first_ = run.Save(run.Claim(), 10);
    second_ = run.Save(1, 20);
    std::filesystem::copy(run.dir().path(), temp_ / "run", std::filesystem::copy_options::recursive);
  }
  // Of the one, then of the other.
  void ExpectRefused(TestRun& other, const std::string& ours, const std::string& theirs, const char* why) {
    ASSERT_TRUE(CopyTo(run, Place(), {ours}).ok());
    const std::vector<int64_t> before = CandidateSteps(Place());
    const Status refused = CopyTo(other, Place(), {theirs});
    EXPECT_EQ(refused.code(), Code::kMismatch) << refused.message();
    EXPECT_THAT(refused.message(), HasSubstr(why));
    EXPECT_EQ(CandidateSteps(Place()), before);
  }
  std::string first_, second_;
};
INSTANTIATE_TEST_SUITE_P(Tiers, ForkedRun, ::testing::Bool(), TierName);

TEST_P(ForkedRun, IsToldByTheCheckpointOfALife) {
  TestRun other(temp_ / "run");
  ExpectRefused(other, run.Save(1, 30), other.Save(1, 30, "", 11),
                "is not what the run here has saved at that step");
}

TEST_P(ForkedRun, IsToldByWhereALifeWentOnFrom) {
  TestRun other(temp_ / "run");
  ASSERT_TRUE(PublishParent(run.dir(), run.Claim(), first_).ok());
  ASSERT_TRUE(PublishParent(other.dir(), other.Claim(), second_).ok());
  ExpectRefused(other, run.Save(2, 30, first_), other.Save(2, 31, second_),
                "life 2 went on from step-000000000010");
}

TEST_P(ForkedRun, IsToldByALaterLife) {
  TestRun other(temp_ / "run");
  ASSERT_TRUE(PublishParent(run.dir(), run.Claim(), second_).ok());
  ExpectRefused(other, run.Save(2, 30, second_), other.Save(1, 31),
                "is of a later life than the run here has had");
}

TEST_P(AMirror, HasTheTagsOfTheRunAlsoWhereTheyMovedOrWent) {
  const uint32_t epoch = run.Claim();
  const std::string first = run.Save(epoch, 10), second = run.Save(epoch, 20), third = run.Save(epoch, 30);
  for (const char* tag : {"moved", "went", "stayed", "left"}) ASSERT_TRUE(SetTag(run.dir(), tag, first).ok());
  ASSERT_TRUE(CopyTo(run, Place(), {first, second}).ok());
  ASSERT_TRUE(SetTag(run.dir(), "moved", second).ok());
  ASSERT_TRUE(RemoveTag(run.dir(), "went").ok());
  ASSERT_TRUE(SetTag(run.dir(), "left", third).ok());  // of which there is no copy
  ASSERT_TRUE(Pin(OpenRun(Place()), ListOf(Place()).checkpoints[1].name).ok());
  ASSERT_TRUE(CopyTo(run, Place(), {second}).ok());
  const auto listing = ListOf(Place());
  EXPECT_EQ(*ReadTags(OpenRun(Place())),
            (std::map<std::string, std::string>{{"moved", listing.checkpoints[0].name},
                                                {"stayed", listing.checkpoints[1].name}}));
  EXPECT_EQ(*ReadPins(OpenRun(Place())), std::set<std::string>{listing.checkpoints[1].name});
}

// A program that stands still may be saved twice at one step.
TEST_P(AMirror, TellsCheckpointsOfOneStepApart) {
  const uint32_t epoch = run.Claim();
  const std::string asked = run.Save(epoch, 10);
  const Attempt attempt = run.Write(epoch, 10);
  ASSERT_TRUE(run.Commit(attempt, "", "preempt").ok());
  const std::string preempted = attempt.name.ToString();
  const auto trigger_of_tagged = [&] {
    const auto tags = ReadTags(OpenRun(Place()));
    return tags->contains("kept") ? LoadManifest(OpenRun(Place()).PathOf(tags->at("kept")))->trigger : "none";
  };
  ASSERT_TRUE(SetTag(run.dir(), "kept", preempted).ok());
  ASSERT_TRUE(CopyTo(run, Place(), {asked}).ok());
  EXPECT_EQ(trigger_of_tagged(), "none");
  ASSERT_TRUE(CopyTo(run, Place(), {asked, preempted}).ok());
  EXPECT_EQ(trigger_of_tagged(), "preempt");
  EXPECT_THAT(ListOf(Place()).checkpoints, SizeIs(2));
  ASSERT_TRUE(SetTag(run.dir(), "kept", asked).ok());
  ASSERT_TRUE(CopyTo(run, Place(), {preempted}).ok());
  EXPECT_EQ(trigger_of_tagged(), "request");
  std::filesystem::remove_all(run.Path(asked));  // pruned
  EXPECT_TRUE(CopyTo(run, Place(), {preempted}).ok());
}

// Else it would make one with an id of its own, into which the run's checkpoints do not belong.
TEST_P(AMirror, IsNotMadeByTheClaim) {
  LifeOptions options;
  options.dir = Place();
  options.self = HolderOf("99");
  options.self.copies = run.dir().path();
  options.ask_slurm = [](const Identity&) { return HolderInSlurm::kUnknown; };
  options.say = [](const std::string&) {};
  EXPECT_EQ(Life::Begin(options).status().code(), Code::kNotFound);
  EXPECT_EQ(RunDirectory::OpenExisting(Place()).status().code(), Code::kNotFound);
}

TEST_P(AMirror, MakesACopyThatLostAFileAgain) {
  const std::string first = run.Save(run.Claim(), 10);
  ASSERT_TRUE(CopyTo(run, Place(), {first}).ok());
  const std::string broken = ListOf(Place()).checkpoints[0].name;
  ASSERT_TRUE(RemoveFile(Place() + "/" + broken + "/" + names::Shard(1)).ok());
  ASSERT_TRUE(CopyTo(run, Place(), {first}).ok());
  const auto candidates = Candidates(ListOf(Place()));
  ASSERT_THAT(candidates, SizeIs(1));
  EXPECT_NE(candidates[0].name, broken);
  EXPECT_TRUE(LoadCheckpoint(OpenRun(Place()), candidates[0].name).ok());
}

TEST_P(AMirror, KeepsWhatTheRulesSayAndWhatIsTagged) {
  const uint32_t epoch = run.Claim();
  std::vector<std::string> names;
  for (int64_t step = 10; step <= 40; step += 10) names.push_back(run.Save(epoch, step));
  ASSERT_TRUE(SetTag(run.dir(), "best", names[0]).ok());
  Told told;
  MirrorOptions options = Options(&told);
  options.keep = KeepRules{{KeepRule::kLast, 2}};
  Mirror mirror(run.dir().path(), Place(), options);
  for (const std::string& name : names) ASSERT_TRUE(mirror.Copy({name}).ok());
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(40, 30, 10));
}

TEST_P(AMirror, TellsWhatWasSavedTooSoonAfterTheNewestCopy) {
  constexpr Nanoseconds kEvery = std::chrono::hours(6);
  const uint32_t epoch = run.Claim();
  const std::string first = run.Save(epoch, 10);
  run.Save(epoch, 20);
  const Listing listing = run.List();
  const Checkpoint &newer = listing.checkpoints[0], &older = listing.checkpoints[1];
  Told told;
  const Mirror mirror(run.dir().path(), Place(), Options(&told));
  EXPECT_EQ(*mirror.TooEarly(newer, kEvery), Nanoseconds(0));  // nothing is there yet
  ASSERT_TRUE(CopyTo(run, Place(), {first}).ok());
  const auto early = mirror.TooEarly(newer, kEvery);
  ASSERT_TRUE(early.ok()) << early.status().message();
  EXPECT_LE(*early, kEvery);
  EXPECT_GT(*early, kEvery - std::chrono::minutes(30));  // the two saves were seconds apart
  EXPECT_EQ(*mirror.TooEarly(older, kEvery), Nanoseconds(0));
  EXPECT_EQ(*mirror.TooEarly(newer, Nanoseconds(0)), Nanoseconds(0));
}

TEST_P(AMirror, ThatWasStoppedCountsForNothingAndIsBegunAnew) {
  const std::string first = run.Save(run.Claim(), 10, "", 70 * kMiB);
  std::stop_source stop;
  Told told;
  MirrorOptions options = Options(&told);
  options.stop = stop.get_token();
  options.under_way = [&](const Checkpoint&, uint64_t done, uint64_t) {
    if (done > 0) stop.request_stop();
  };
  EXPECT_EQ(Mirror(run.dir().path(), Place(), options).Copy({first}).code(), Code::kCancelled);
  EXPECT_THAT(CandidateSteps(Place()), IsEmpty());
  ASSERT_TRUE(CopyTo(run, Place(), {first}).ok());
  EXPECT_THAT(Attempts(), SizeIs(1));
  EXPECT_THAT(memory_->uploads(), IsEmpty());
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(10));
}

TEST_P(AMirror, WaitsForNobodyWhoLivesAndTakesOverFromTheDead) {
  const uint32_t epoch = run.Claim();
  const std::string first = run.Save(epoch, 10), second = run.Save(epoch, 20);
  Status meanwhile;
  Told told;
  MirrorOptions options = Options(&told);
  options.self.job = "7";
  options.under_way = [&](const Checkpoint&, uint64_t done, uint64_t total) {
    if (done != total) return;
    // A later life of the same job: the earlier one is dead by construction, whatever it still does.
    Told unused;
    MirrorOptions next = Options(&unused);
    next.self.job = "7";
    next.self.restart = 1;
    meanwhile = Mirror(run.dir().path(), Place(), next).Copy({first, second});
  };
  const Status stale = Mirror(run.dir().path(), Place(), options).Copy({first});
  EXPECT_TRUE(meanwhile.ok()) << meanwhile.message();
  EXPECT_EQ(stale.code(), Code::kFenced) << stale.message();
  EXPECT_THAT(CandidateSteps(Place()), ElementsAre(20, 10));
  EXPECT_THAT(Attempts(), SizeIs(2));
  for (const Checkpoint& c : Candidates(ListOf(Place())))
    EXPECT_THAT(VerifyCheckpoint(OpenRun(Place()), c.name)->faults, IsEmpty());
}

// At each request to the store it fails once, or the mirrorer dies. Nothing half-copied counts then, and the next one does it all.
class AtEachRequest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(AMirrorInABucket, AtEachRequest, ::testing::Bool(),
                         [](const auto& what) { return what.param ? "Dies" : "Fails"; });

TEST_P(AtEachRequest, NothingHalfCopiedCounts) {
  const bool dies = GetParam();
  TestRun run;
  const std::string first = run.Save(run.Claim(), 10, "", 6 * kMiB);
  const std::string to = "s3://archive/copy";
  int failed = 0;
  for (int failing = 0;; ++failing) {
    const auto memory = std::make_shared<MemoryStore>();
    std::atomic<int> calls = 0;
    std::atomic<bool> well = false;
    const StoreInUse in_use(
        std::make_shared<FaultyStore>(memory, [&](std::string_view call, const std::string&) {
          if (well || call == "Cancel") return Fate::kPass;
          const int call_number = calls++;
          return call_number == failing || (dies && call_number > failing) ? Fate::kFail : Fate::kPass;
        }));
    Told told;
    MirrorOptions options = Options(&told);
    options.self.job = "7";
    failed += Mirror(run.dir().path(), to, options).Copy({first}).ok() ? 0 : 1;
    well = true;
    if (calls <= failing) break;  // none was left to fail
    if (const auto there = RunDirectory::OpenExisting(to); there.ok()) {
      const Listing listing = ListOf(to);
      for (const Checkpoint& c : listing.checkpoints)
        EXPECT_TRUE(LoadCheckpoint(*there, c.name).ok()) << "request " << failing;
    }
    options.self.restart = 1;  // so the first one, which may not have said that it left, is known to be gone
    const Status again = Mirror(run.dir().path(), to, options).Copy({first});
    ASSERT_TRUE(again.ok()) << "request " << failing << ": " << again.message();
    EXPECT_THAT(CandidateSteps(to), ElementsAre(10)) << "request " << failing;
    EXPECT_THAT(memory->uploads(), IsEmpty()) << "request " << failing;
  }
  EXPECT_GT(failed, 10);
}

}  // namespace
}  // namespace cairn
