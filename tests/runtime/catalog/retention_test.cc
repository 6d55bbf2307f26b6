#include "runtime/catalog/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <utility>

#include "tests/runtime/catalog/test_run.h"
#include "tests/runtime/traced_child.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Checkpoint At(uint32_t epoch, int64_t step) {
  Checkpoint c;
  c.id = {step, epoch, "00000000"};
  c.name = std::to_string(epoch) + "/" + std::to_string(step);
  return c;
}

TEST(PlanRetention, KeepsTheNewestAndPrunesTheOldestFirst) {
  const Listing listing{{At(1, 40), At(1, 30), At(1, 20), At(1, 10)}, ""};
  EXPECT_THAT(PlanRetention(listing, 1, "", 2, {}), ElementsAre("1/10", "1/20"));
  EXPECT_THAT(PlanRetention(listing, 1, "", 4, {}), IsEmpty());
  EXPECT_THAT(PlanRetention(listing, 1, "", 1, {}), ElementsAre("1/10", "1/20", "1/30"));
}

TEST(PlanRetention, SparesTaggedPinnedAndLeasedOnes) {
  const Listing listing{{At(1, 40), At(1, 30), At(1, 20), At(1, 10)}, ""};
  EXPECT_THAT(PlanRetention(listing, 1, "", 1, {"1/20"}), ElementsAre("1/10", "1/30"));
}

TEST(PlanRetention, SparesTheParentUntilThisLifeHasCommitted) {
  EXPECT_THAT(PlanRetention({{At(1, 40), At(1, 30)}, ""}, 2, "1/30", 1, {}), IsEmpty());
  EXPECT_THAT(PlanRetention({{At(2, 50), At(1, 40), At(1, 30)}, ""}, 2, "1/30", 1, {}),
              ElementsAre("1/30", "1/40"));
}

TEST(PlanRetention, TouchesNeitherOtherBranchesNorWhatWasPassedOver) {
  Checkpoint orphan = At(2, 50), struck = At(1, 40), unreadable = At(1, 30);
  orphan.orphan = true;
  struck.struck = "block 3";
  unreadable.readable = Status(Code::kDamage, "manifest");
  // They do not count among the kept ones, either.
  EXPECT_THAT(
      PlanRetention({{At(3, 60), orphan, struck, unreadable, At(1, 20), At(1, 10)}, ""}, 3, "", 2, {}),
      ElementsAre("1/10"));
}

TEST(PruneCheckpoint, RemovesEverything) {
  TestRun run;
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10), b = run.Save(epoch, 20);
  ASSERT_TRUE(PruneCheckpoint(run.dir(), epoch, a).ok());
  EXPECT_FALSE(run.Has(a));
  EXPECT_FALSE(run.Has(names::Removed(epoch, a)));
  EXPECT_THAT(run.CandidateNames(), ElementsAre(b));
}

TEST(PruneCheckpoint, IsFencedOnceAnotherLifeHasClaimed) {
  TestRun run;
  const uint32_t epoch = run.Claim();
  const std::string a = run.Save(epoch, 10);
  run.Claim();
  EXPECT_EQ(PruneCheckpoint(run.dir(), epoch, a).code(), Code::kFenced);
  EXPECT_TRUE(run.Has(a));
}

TEST(PruneCheckpoint, GivesTheNameBackWhenAReaderCameMeanwhile) {
  TestRun run;
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
    ASSERT_TRUE(TakeOver(dir, *ClaimEpoch(dir, epoch, Life("2")), "00112233445566aa").ok());
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

TEST(LeaseWatch, HoldsWhileTheReaderBeatsAndForgetsADeadOne) {
  TestRun run;
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
