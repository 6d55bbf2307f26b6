#include "runtime/session/life.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "runtime/catalog/commit.h"
#include "runtime/formats/names.h"
#include "tests/runtime/temp_dir.h"
#include "tests/runtime/traced_child.h"

namespace cairn {
namespace {

TEST(Life, BeatsWhileItsOwnerIsBusyAndLeavesInGoodOrder) {
  const TempDir tmp;
  LifeOptions options;
  options.dir = tmp.path() + "/run";
  options.ask_slurm = [](const Identity&) { return HolderInSlurm::kUnknown; };
  options.say = [](const std::string& line) { ADD_FAILURE() << line; };
  options.beat_interval = std::chrono::milliseconds(1);
  auto life = Life::Begin(options);
  ASSERT_TRUE(life.ok()) << life.status().message();
  const std::string path = (*life)->directory().PathOf(names::AliveFile((*life)->epoch()));
  const auto bound = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  uint64_t beats = 0;
  while (beats < 3 && std::chrono::steady_clock::now() < bound) {
    if (const auto counter = *ReadBeat(path)) beats = counter->value;
    std::this_thread::yield();
  }
  EXPECT_GE(beats, 3u);
  ASSERT_TRUE((*life)->End().ok());
  EXPECT_TRUE((*ReadBeat(path))->left);
}

TEST(Life, BeginsAgainWhenAnotherOneWasFasterAndHasLeft) {
  const TempDir tmp;
  LifeOptions options;
  options.dir = tmp.path() + "/run";
  options.say = [](const std::string& line) { ADD_FAILURE() << line; };
  const RunDirectory dir = *RunDirectory::Open(options.dir, "test");
  const auto live_and_leave = [&dir](uint32_t newest, const std::string& job) {
    Identity other;
    other.job = job;
    ASSERT_EQ(*ClaimEpoch(dir, newest, other), newest + 1);
    ASSERT_TRUE(BeatFile::Create(dir.PathOf(names::AliveFile(newest + 1)))->Leave().ok());
  };
  live_and_leave(0, "1");
  int asked = 0;
  options.self.job = "2";
  options.ask_slurm = [&](const Identity&) {  // between the look at the newest claim and our own
    if (asked++ == 0) live_and_leave(1, "3");
    return HolderInSlurm::kGone;
  };
  const auto life = Life::Begin(options);
  ASSERT_TRUE(life.ok()) << life.status().message();
  EXPECT_EQ((*life)->epoch(), 3u);
  EXPECT_EQ(asked, 2);
}

// A life that could not claim at its start has files of its own there when it does.
TEST(Life, WaitsForNodesThatDrainWhatTheLifeBeforeLeftAndThenClaims) {
  const TempDir tmp;
  LifeOptions options;
  options.dir = tmp.path() + "/run";
  options.ask_slurm = [](const Identity&) { return HolderInSlurm::kGone; };
  options.say = [](const std::string& line) { ADD_FAILURE() << line; };
  auto before = Life::Begin(options);
  ASSERT_TRUE(before.ok()) << before.status().message();
  const RunDirectory& dir = (*before)->directory();
  ASSERT_TRUE((*before)->End().ok());
  const std::string left = dir.PathOf(names::LeftFolder(1)), next = dir.PathOf(names::EpochFile(2));
  std::filesystem::create_directory(left);
  auto beat = BeatFile::Create(left + "/1.n1" + std::string(names::kAliveSuffix));
  ASSERT_TRUE(beat.ok());

  int said = 0;
  options.say = [&](const std::string& line) {
    EXPECT_NE(line.find("waiting until that has ended"), std::string::npos) << line;
    EXPECT_FALSE(std::filesystem::exists(next));
    ++said;
    EXPECT_TRUE(beat->Leave().ok());
  };
  const auto life = Life::Begin(options);
  ASSERT_TRUE(life.ok()) << life.status().message();
  EXPECT_EQ(said, 1);
  EXPECT_EQ((*life)->epoch(), 2u);
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST(Life, KeepsWhatItsOwnRanksWroteBeforeItHadAnEpoch) {
  const TempDir tmp;
  LifeOptions options;
  options.dir = tmp.path() + "/run";
  options.self.claim = "00112233445566aa";
  options.ask_slurm = [](const Identity&) { return HolderInSlurm::kUnknown; };
  options.say = [](const std::string& line) { ADD_FAILURE() << line; };
  const RunDirectory dir = *RunDirectory::Open(options.dir, "test");
  const std::string own = dir.PathOf(names::StagingFolder({options.self.claim, 3}));
  const std::string other = dir.PathOf(names::StagingFolder({"00112233445566ab", 3}));
  for (const std::string& folder : {own, other}) ASSERT_TRUE(MakeDirectories(folder).ok());
  const auto life = Life::Begin(options);
  ASSERT_TRUE(life.ok()) << life.status().message();
  EXPECT_TRUE(std::filesystem::exists(own));
  EXPECT_FALSE(std::filesystem::exists(other));
}

// Another life claims the next epoch when this one has just claimed its own, or has just taken over what it found: it owns nothing.
TEST(Life, IsFencedWhenItIsOvertakenBeforeItHasBegun) {
  if (!TracedChild::Possible()) GTEST_SKIP() << "ptrace is not allowed here";
  constexpr int kBegun = 0, kFenced = 1, kOther = 2;
  for (const bool taken_over : {false, true}) {
    const TempDir tmp;
    LifeOptions options;
    options.dir = tmp.path() + "/run";
    options.self.job = "2";
    options.ask_slurm = [](const Identity&) { return HolderInSlurm::kGone; };
    options.say = [](const std::string&) {};
    const RunDirectory dir = *RunDirectory::Open(options.dir, "test");
    Identity other;
    other.job = "1";
    ASSERT_EQ(*ClaimEpoch(dir, 0, other), 1u);
    const std::string attempt = BeginAttempt(dir, 1, 10)->name.ToString();
    TracedChild child([&] {
      const auto life = Life::Begin(options);
      return life.ok() ? kBegun : life.status().code() == Code::kFenced ? kFenced : kOther;
    });
    const auto there = [&](const std::string& name) { return std::filesystem::exists(dir.PathOf(name)); };
    const auto now = [&] {
      return taken_over ? !there(attempt) && !there(names::Dead(attempt)) : there(names::EpochFile(2));
    };
    while (!now()) ASSERT_TRUE(child.Step());
    ASSERT_EQ(*ClaimEpoch(dir, 2, other), 3u);
    EXPECT_EQ(child.Finish(), kFenced) << "taken over: " << taken_over;
  }
}

}  // namespace
}  // namespace cairn
