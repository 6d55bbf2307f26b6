#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/runtime/command/program.h"

namespace cairn {
namespace {

TEST(CairnRun, RefusesWhatIsNoSrunWithoutRunningIt) {
  const std::string folder = NewFolder(), program = folder + "/train";
  WriteText(program, "#!/bin/sh\ntouch " + folder + "/ran\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const Outcome outcome = RunCairn({"run", "--", program}, {{"SLURM_JOB_ID", "7"}});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, ::testing::HasSubstr("the command must begin with srun"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/ran"));
}

}  // namespace
}  // namespace cairn
