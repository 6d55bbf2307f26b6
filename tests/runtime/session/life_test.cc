#include "runtime/session/life.h"

#include <gtest/gtest.h>

#include <thread>

#include "runtime/formats/names.h"
#include "tests/runtime/temp_dir.h"

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

}  // namespace
}  // namespace cairn
