// Whole sessions whose state lies in device memory: saved, killed, resumed, by the stand-in for the driver or a real one (CAIRN_TEST_GPU=1).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "tests/multiprocess/launcher.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

bool OnRealGpu() { return std::getenv("CAIRN_TEST_GPU") != nullptr; }

// Copies and kernels take long, so that whatever does not wait for them comes too early.
std::map<std::string, std::string> Environment() {
  if (OnRealGpu()) return {};
  const char* const others = std::getenv("CAIRN_TEST_LIBRARIES");  // instead of those that were built
  return {
      {"LD_LIBRARY_PATH", std::string(CAIRN_STANDIN) + (others != nullptr ? std::string(":") + others : "")},
      {"CUDA_STANDIN_COMPUTE_US", "3000"},
      {"CUDA_STANDIN_COPY_US", "20000"}};
}

bool HasCheckpoint(const std::string& dir) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    if (std::filesystem::exists(entry.path() / "manifest.json")) return true;
  }
  return false;
}

class CudaSession : public ::testing::Test {
 protected:
  Step Start(int ranks, std::vector<std::string> args, std::map<std::string, std::string> more = {}) {
    more.merge(Environment());
    args.insert(args.begin(), CAIRN_CUDA_PROGRAM);
    return Step({.ranks = ranks, .dir = dir_, .env = more, .restart = lives_++, .program = args});
  }
  // Until a save that was asked for in the middle of the loop is durable.
  std::string SaveThenKill(int ranks, std::vector<std::string> args,
                           std::map<std::string, std::string> more = {}) {
    args.insert(args.end(), {"--save-at", "3"});
    if (const char* const copies = std::getenv("CUDA_STANDIN_COPY_US"))
      more.insert({"CUDA_STANDIN_COPY_US", copies});
    Step step = Start(ranks, args, more);
    EXPECT_TRUE(WaitFor([&] { return HasCheckpoint(dir_); })) << step.Log();
    step.KillAll(SIGKILL);
    EXPECT_TRUE(step.Join());
    return step.Log();
  }
  void ExpectRight(int ranks, std::vector<std::string> args) {
    args.insert(args.end(), {"--steps", "1"});  // fewer than are done: it ends at once
    Step step = Start(ranks, args);
    ASSERT_TRUE(step.Join()) << step.Log();
    for (int r = 0; r < ranks; ++r)
      EXPECT_THAT(step.rank(r).Line("resumed"), MatchesRegex("[0-9]+ right")) << step.Log();
  }

  TempDir tmp_;
  std::string dir_ = tmp_.path() + "/run";
  int lives_ = 0;
};

TEST_F(CudaSession, ASaveHoldsTheStateOfItsBoundaryAlone) {
  SaveThenKill(2, {});
  ExpectRight(1, {});
}

TEST_F(CudaSession, AProgramOnTheLegacyDefaultStreamSaysNothingOfIt) {
  SaveThenKill(1, {"--legacy-stream"});
  ExpectRight(3, {"--legacy-stream"});
}

TEST_F(CudaSession, StreamsMayBeNamedBeforeTheFirstArray) {
  // Copies that do not wait for the computation come before it.
  SaveThenKill(1, {"--streams-first"}, {{"CUDA_STANDIN_COMPUTE_US", "20000"}, {"CUDA_STANDIN_COPY_US", "0"}});
  ExpectRight(1, {});
}

TEST_F(CudaSession, WhatDevicesHeldIsRestoredIntoHostMemoryAndTheReverse) {
  SaveThenKill(1, {});
  ExpectRight(2, {"--host"});
  dir_ = tmp_.path() + "/other";
  lives_ = 0;
  SaveThenKill(2, {"--host"});
  ExpectRight(1, {});
}

TEST_F(CudaSession, TheLastSaveOfARunHasAll) {
  Step step = Start(2, {"--steps", "3"});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(step.rank(0).Line("done"), "0") << step.Log();
  ExpectRight(1, {});
}

TEST_F(CudaSession, WritesThroughWhereThereIsNoMemoryForImages) {
  if (OnRealGpu()) GTEST_SKIP() << "a driver takes more memory than the limit here";
  const std::string log =
      SaveThenKill(1, {"--words", "3000000"}, {{"CAIRN_LOCAL", "none"}, {"SLURM_MEM_PER_NODE", "80"}});
  EXPECT_THAT(log, HasSubstr("while the program stands still"));
  ExpectRight(1, {"--words", "3000000"});
}

TEST_F(CudaSession, MemoryThatCannotBePinnedCostsALineAndNoSave) {
  if (OnRealGpu()) GTEST_SKIP() << "only the stand-in can be told to refuse it";
  const std::string log = SaveThenKill(1, {}, {{"CUDA_STANDIN_NO_PINS", "1"}});
  EXPECT_THAT(log,
              HasSubstr("copies from the device are slower than they could be: host memory cannot be pinned: "
                        "cuMemHostRegister"));
  ExpectRight(1, {});
}

TEST_F(CudaSession, ADriverWithoutADeviceIsSaidInOneLine) {
  if (OnRealGpu()) GTEST_SKIP() << "there is one";
  Step step = Start(1, {}, {{"CUDA_STANDIN_NO_DEVICE", "1"}});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(step.rank(0).exit_code(), 5);
  EXPECT_EQ(step.rank(0).Line("add"),
            "-7 memory of a CUDA device cannot be reached: the NVIDIA driver cannot be used (cuInit: no "
            "CUDA-capable device "
            "is detected)");
}

}  // namespace
}  // namespace cairn::testing
