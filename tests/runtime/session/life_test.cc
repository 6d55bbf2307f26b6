#include "runtime/session/life.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

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
    if (const auto counter = ReadBeat(path)) beats = counter->value;
    std::this_thread::yield();
  }
  EXPECT_GE(beats, 3u);
  ASSERT_TRUE((*life)->End().ok());
  EXPECT_TRUE(ReadBeat(path)->left);
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

// Wherever another life claims the next epoch before the last look, this one owns nothing.
TEST(Life, IsFencedWhenItIsOvertakenBeforeItHasBegun) {
  if (!TracedChild::Possible()) GTEST_SKIP() << "ptrace is not allowed here";
  constexpr int kBegun = 0, kFenced = 1, kOther = 2;
  int fenced = 0;
  for (int after = 0; after < 10000; after = 2 * after + 1) {  // stops after its claim
    const TempDir tmp;
    LifeOptions options;
    options.dir = tmp.path() + "/run";
    options.ask_slurm = [](const Identity&) { return HolderInSlurm::kUnknown; };
    options.say = [](const std::string&) {};
    const RunDirectory dir = *RunDirectory::Open(options.dir, "test");
    TracedChild child([&] {
      const auto life = Life::Begin(options);
      return life.ok() ? kBegun : life.status().code() == Code::kFenced ? kFenced : kOther;
    });
    const auto claimed = [&] { return std::filesystem::exists(dir.PathOf(names::EpochFile(1))); };
    bool lives = true;
    while (lives && !claimed()) lives = child.Step();
    for (int n = 0; lives && n < after; ++n) lives = child.Step();
    if (!lives) break;
    Identity other;
    other.job = "2";
    ASSERT_EQ(*ClaimEpoch(dir, 1, other), 2u);
    const int end = child.Finish();
    if (end == kBegun) break;  // past its last look
    ASSERT_EQ(end, kFenced) << "overtaken " << after << " stops after its claim";
    ++fenced;
  }
  EXPECT_GT(fenced, 3);
}

}  // namespace
}  // namespace cairn
