#include "runtime/supervisor/plugin_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PluginOptions, TakesThemOutOfSrunsAndLeavesTheProgramsAlone) {
  const auto taken =
      TakePluginOptions({"srun", "--checkpoint", "--mpi=pmix", "--checkpoint-dir", "/d/run", "-c", "2",
                         "--checkpoint-require", "--checkpoint-keep=last=3", "./train", "--checkpoint=x"});
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_THAT(taken->command, ElementsAre("srun", "--mpi=pmix", "-c", "2", "./train", "--checkpoint=x"));
  EXPECT_THAT(taken->environment,
              ElementsAre("CAIRN_PLUGIN_CAIRN_CHECKPOINT=auto", "CAIRN_PLUGIN_CAIRN_DIR=/d/run",
                          "CAIRN_PLUGIN_CAIRN_REQUIRE=yes", "CAIRN_PLUGIN_CAIRN_KEEP=last=3"));
}

TEST(PluginOptions, RefusesWhatThePluginWould) {
  EXPECT_THAT(TakePluginOptions({"srun", "--checkpoint-colour=red", "./train"}).status().message(),
              HasSubstr("--checkpoint-colour=red is no option of Cairn's"));
  EXPECT_EQ(TakePluginOptions({"srun", "--checkpoint-dir"}).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace cairn
