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

}  // namespace
}  // namespace cairn
