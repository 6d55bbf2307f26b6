#include "runtime/catalog/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "runtime/catalog/marks.h"
#include "tests/runtime/catalog/test_run.h"
#include "tests/runtime/traced_child.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

KeepRules Last(int64_t n) { return {{KeepRule::kLast, n}}; }

Checkpoint At(uint32_t epoch, int64_t step) {
  Checkpoint c;
  c.id = {step, epoch, "00000000"};
  c.manifest.epoch = epoch;
  c.manifest.step = step;
  c.name = std::to_string(epoch) + "/" + std::to_string(step);
  return c;
}

class Pruned : public OnBothTiers {};
INSTANTIATE_TEST_SUITE_P(, Pruned, ::testing::Bool(), TierName);

TEST(PlanRetention, KeepsTheNewestAndPrunesTheOldestFirst) {
  const Listing listing{{At(1, 40), At(1, 30), At(1, 20), At(1, 10)}, ""};
  EXPECT_THAT(PlanRetention(listing, 1, "", Last(2), {}), ElementsAre("1/10", "1/20"));
  EXPECT_THAT(PlanRetention(listing, 1, "", Last(4), {}), IsEmpty());
  EXPECT_THAT(PlanRetention(listing, 1, "", Last(1), {}), ElementsAre("1/10", "1/20", "1/30"));
}

TEST(PlanRetention, SparesTaggedPinnedAndLeasedOnes) {
  const Listing listing{{At(1, 40), At(1, 30), At(1, 20), At(1, 10)}, ""};
  EXPECT_THAT(PlanRetention(listing, 1, "", Last(1), {"1/20"}), ElementsAre("1/10", "1/30"));
}

TEST(PlanRetention, SparesTheParentUntilThisLifeHasCommitted) {
  EXPECT_THAT(PlanRetention({{At(1, 40), At(1, 30)}, ""}, 2, "1/30", Last(1), {}), IsEmpty());
  EXPECT_THAT(PlanRetention({{At(2, 50), At(1, 40), At(1, 30)}, ""}, 2, "1/30", Last(1), {}),
              ElementsAre("1/30", "1/40"));
}

TEST(PlanRetention, TouchesNeitherOtherBranchesNorWhatWasPassedOver) {
  Checkpoint orphan = At(2, 50), struck = At(1, 40), unreadable = At(1, 30);
  orphan.orphan = true;
  struck.struck = "block 3";
  unreadable.readable = Status(Code::kDamage, "manifest");
  // They do not count among the kept ones, either.
  EXPECT_THAT(
      PlanRetention({{At(3, 60), orphan, struck, unreadable, At(1, 20), At(1, 10)}, ""}, 3, "", Last(2), {}),
      ElementsAre("1/10"));
}

Checkpoint Measured(int64_t step, double loss, int64_t measured_at) {
  Checkpoint c = At(1, step);
  c.manifest.metrics["loss"] = {loss, measured_at};
  return c;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(PlanRetention, NeverPrunesTheNewestWhateverTheRules) {
  const Listing listing{{At(1, 40), At(1, 30)}, ""};
  EXPECT_THAT(PlanRetention(listing, 1, "", {{KeepRule::kBest, 1, "loss"}}, {}), ElementsAre("1/30"));
  EXPECT_THAT(PlanRetention(listing, 1, "", {{KeepRule::kEverySteps, 1000}}, {}), ElementsAre("1/30"));
}

TEST(PlanRetention, KeepsTheFirstAtOrAfterEachMultipleOfSteps) {
  const Listing listing{{At(1, 340), At(1, 290), At(1, 240), At(1, 190), At(1, 140), At(1, 100), At(1, 50)},
                        ""};
  EXPECT_THAT(PlanRetention(listing, 1, "", {{KeepRule::kEverySteps, 100}}, {}),
              ElementsAre("1/50", "1/140", "1/190", "1/290"));
}

// What was pruned before must not change what is kept: the rule is applied after every save.
TEST(PlanRetention, KeepsTheSameWhenAppliedAfterEverySaveAsOnce) {
  const KeepRules rules = {{KeepRule::kEverySteps, 100}, {KeepRule::kBest, 2, "loss"}};
  std::vector<Checkpoint> all, left;
  const double losses[] = {9, 4, 7, 5, 6, 3, 8, 2, 9, 9};
  for (int i = 0; i < 10; ++i) {
    const Checkpoint c = Measured(30 + 47 * i, losses[i], 30 + 47 * i);
    all.insert(all.begin(), c);
    left.insert(left.begin(), c);
    for (const std::string& name : PlanRetention({left, ""}, 1, "", rules, {}))
      std::erase_if(left, [&](const Checkpoint& one) { return one.name == name; });
  }
  const auto pruned = PlanRetention({all, ""}, 1, "", rules, {});
  std::erase_if(all,
                [&](const Checkpoint& c) { return std::count(pruned.begin(), pruned.end(), c.name) > 0; });
  const auto steps = [](const std::vector<Checkpoint>& checkpoints) {
    std::vector<int64_t> out;
    for (const Checkpoint& c : checkpoints) out.push_back(c.id.step);
    return out;
  };
  // 124, 218, 312 and 406 are the first of their hundreds; the best are 359 (2) and 265 (3); 453 is the newest.
  EXPECT_THAT(steps(all), ElementsAre(453, 406, 359, 312, 265, 218, 124));
  EXPECT_EQ(steps(left), steps(all));
}

TEST(PlanRetention, KeepsTheFirstOfEachStretchOfTime) {
  std::vector<Checkpoint> checkpoints;  // every 25 minutes from 12:10 on
  const char* times[] = {"2026-03-01T12:10:00Z", "2026-03-01T12:35:00Z", "2026-03-01T13:00:00Z",
                         "2026-03-01T13:25:00Z", "2026-03-01T13:50:00Z", "2026-03-01T14:15:00Z",
                         "2026-03-01T14:40:00Z"};
  for (int i = 0; i < 7; ++i) {
    Checkpoint c = At(1, 10 * (i + 1));
    c.manifest.time = times[i];
    checkpoints.insert(checkpoints.begin(), c);
  }
  EXPECT_THAT(PlanRetention({checkpoints, ""}, 1, "", {{KeepRule::kEveryTime, INT64_C(3600000000000)}}, {}),
              ElementsAre("1/20", "1/40", "1/50"));
}

TEST(PlanRetention, KeepsTheBestByAMetric) {
  const Listing listing{{Measured(50, 0.4, 50), Measured(40, 0.2, 40), Measured(30, kNan, 30),
                         Measured(20, 0.3, 20), Measured(10, 0.9, 10)},
                        ""};
  EXPECT_THAT(PlanRetention(listing, 1, "", {{KeepRule::kBest, 2, "loss", false}}, {}),
              ElementsAre("1/10", "1/30"));
  EXPECT_THAT(PlanRetention(listing, 1, "", {{KeepRule::kBest, 2, "loss", true}}, {}),
              ElementsAre("1/20", "1/30", "1/40"));
  EXPECT_THAT(PlanRetention(listing, 1, "", {{KeepRule::kBest, 2, "accuracy", true}}, {}),
              ElementsAre("1/10", "1/20", "1/30", "1/40"));
}

// A value stands until the next one is given: the later checkpoints are not as good as the one that it was measured on.
TEST(PlanRetention, KeepsOfOneMeasurementTheCheckpointNextToItAlone) {
  const Listing listing{{Measured(50, 0.8, 41), Measured(40, 0.1, 11), Measured(30, 0.1, 11),
                         Measured(20, 0.1, 11), Measured(10, 0.5, 9)},
                        ""};
  EXPECT_THAT(PlanRetention(listing, 1, "", {{KeepRule::kBest, 2, "loss", false}}, {}),
              ElementsAre("1/30", "1/40"));
}

TEST(PlanRetention, SparesTheNewestWithFiniteMetrics) {
  const Listing listing{
      {Measured(40, kInfinity, 40), Measured(30, kNan, 30), Measured(20, 0.3, 20), Measured(10, 0.2, 10)},
      ""};
  EXPECT_THAT(PlanRetention(listing, 1, "", Last(1), {}), ElementsAre("1/10", "1/30"));
}

TEST(PlanRetention, AddsWhatEachRuleKeeps) {
  const Listing listing{{Measured(340, 0.4, 340), Measured(290, 0.9, 290), Measured(210, 0.8, 210),
                         Measured(150, 0.1, 150), Measured(120, 0.5, 120)},
                        ""};
  EXPECT_THAT(
      PlanRetention(listing, 1, "",
                    {{KeepRule::kLast, 2}, {KeepRule::kEverySteps, 200}, {KeepRule::kBest, 1, "loss"}}, {}),
      ElementsAre("1/120"));
}

TEST_P(Pruned, RemovesEverything) {
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10), b = run.Save(epoch, 20);
  ASSERT_TRUE(PruneCheckpoint(run.dir(), epoch, a).ok());
  EXPECT_FALSE(run.Has(a));
  EXPECT_FALSE(run.Has(names::Removed(epoch, a)));
  EXPECT_THAT(run.CandidateNames(), ElementsAre(b));
}

// From the marks on disk to what is left of it.
TEST_P(Pruned, LeavesWhatIsTaggedPinnedReadPassedOverOrOfAnotherBranch) {
  const uint32_t first = run.Claim();
  std::string saved[7];
  for (int i = 0; i < 7; ++i) saved[i] = run.Save(first, 10 * (i + 1));
  const uint32_t epoch = run.Claim();
  ASSERT_TRUE(PublishParent(run.dir(), epoch, saved[5]).ok());  // saved[6] is of another branch now
  const std::string own = run.Save(epoch, 70, saved[5]);
  ASSERT_TRUE(SetTag(run.dir(), "best", saved[0]).ok());
  ASSERT_TRUE(Pin(run.dir(), saved[1]).ok());
  const auto lease = ReadLease::Take(run.dir(), saved[2]);
  ASSERT_TRUE(lease.ok());
  ASSERT_TRUE(MarkDamaged(run.dir(), saved[3], "block 1").ok());
  LeaseWatch leases;
  const auto kept = KeptByMarks(run.dir(), leases, BeatWatch::Time());
  ASSERT_TRUE(kept.ok()) << kept.status().message();
  for (const std::string& name : PlanRetention(run.List(), epoch, saved[5], Last(1), *kept))
    ASSERT_TRUE(PruneCheckpoint(run.dir(), epoch, name).ok()) << name;
  for (const int i : {0, 1, 2, 3, 6}) EXPECT_TRUE(run.Has(saved[i])) << i;
  for (const int i : {4, 5}) EXPECT_FALSE(run.Has(saved[i])) << i;
  EXPECT_TRUE(run.Has(own));
}

TEST_P(Pruned, IsFencedOnceAnotherLifeHasClaimed) {
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10);
  run.Claim();
  EXPECT_EQ(PruneCheckpoint(run.dir(), epoch, a).code(), Code::kFenced);
  EXPECT_TRUE(run.Has(a));
}

TEST_P(Pruned, GivesTheNameBackWhenAReaderCameMeanwhile) {
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10);
  {
    const auto lease = ReadLease::Take(run.dir(), a);
    ASSERT_TRUE(lease.ok()) << lease.status().message();
    EXPECT_EQ(PruneCheckpoint(run.dir(), epoch, a).code(), Code::kBusy);
    EXPECT_TRUE(LoadCheckpoint(run.dir(), a).ok());
  }
  EXPECT_TRUE(PruneCheckpoint(run.dir(), epoch, a).ok());
}

// What a kill would leave is what is there when the process stands still. Once a checkpoint has lost its name it must not come back.
TEST(PruneCheckpoint, KilledAtAnyCallIsNotBegunOrEndedByTheNextLife) {
  if (!TracedChild::Possible()) GTEST_SKIP() << "ptrace is not allowed here";
  namespace fs = std::filesystem;
  TestRun run;
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10), b = run.Save(epoch, 20);
  int not_begun = 0, begun = 0;
  std::set<std::string> before;
  TracedChild child([&] { return PruneCheckpoint(run.dir(), epoch, a).ok() ? 0 : 1; });
  do {
    std::set<std::string> now;
    for (const auto& entry : fs::recursive_directory_iterator(run.dir().path())) now.insert(entry.path());
    if (std::exchange(before, now) == now) continue;
    const std::string left = run.dir().path() + "-" + std::to_string(not_begun + begun);
    fs::copy(run.dir().path(), left, fs::copy_options::recursive);
    const RunDirectory dir = *RunDirectory::OpenExisting(left);
    const bool removed = !run.Has(a);
    ++(removed ? begun : not_begun);
    ASSERT_TRUE(TakeOver(dir, *ClaimEpoch(dir, epoch, HolderOf("2")), "00112233445566aa").ok());
    std::vector<std::string> there;
    for (const Checkpoint& c : Candidates(*ListCheckpoints(dir))) there.push_back(c.name);
    ASSERT_EQ(there, removed ? std::vector{b} : std::vector({b, a})) << left;
    EXPECT_FALSE(fs::exists(left + "/" + names::Removed(epoch, a))) << left;
  } while (child.Step());
  EXPECT_EQ(child.Finish(), 0);
  EXPECT_EQ(not_begun, 1);
  EXPECT_GE(begun, 6);  // the rename, four files, the folder
}

TEST(ReadLease, IsRefusedForACheckpointThatIsGone) {
  TestRun run;
  EXPECT_EQ(ReadLease::Take(run.dir(), "step-000000000010.e1.00000000").status().code(), Code::kNotFound);
  EXPECT_THAT(*ListDirectory(run.Path("leases")), IsEmpty());
}

TEST_P(Pruned, HoldsWhileTheReaderBeatsAndForgetsADeadOne) {
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10), b = run.Save(epoch, 20);
  auto lease_a = ReadLease::Take(run.dir(), a), lease_b = ReadLease::Take(run.dir(), b);
  ASSERT_TRUE(lease_a.ok() && lease_b.ok());
  const auto at = [](int second) { return BeatWatch::Time(std::chrono::seconds(second)); };
  LeaseWatch watch;
  EXPECT_THAT(*watch.Leased(run.dir(), at(0)), UnorderedElementsAre(a, b));
  ASSERT_TRUE(lease_a->Beat().ok());
  EXPECT_THAT(*watch.Leased(run.dir(), at(20)), UnorderedElementsAre(a, b));
  EXPECT_THAT(*watch.Leased(run.dir(), at(30)), ElementsAre(a));  // b never moved
  EXPECT_EQ(ListDirectory(run.Path("leases"))->size(), 1u);
}

}  // namespace
}  // namespace cairn
