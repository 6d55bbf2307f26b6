#include "runtime/supervisor/plugin_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(PluginOptions, TakesThemOutOfSrunsAndLeavesTheProgramsAlone) {
  const auto taken = TakePluginOptions({"srun", "--checkpoint", "--mpi=pmix", "--checkpoint-dir", "/d/run",
                                        "-c", "2", "--checkpoint-require", "--checkpoint-keep=last=3",
                                        "--checkpoint-dir=/d/other", "./train", "--checkpoint=x"});
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_THAT(taken->command, ElementsAre("srun", "--mpi=pmix", "-c", "2", "./train", "--checkpoint=x"));
  EXPECT_THAT(taken->values, ElementsAre(Pair("CAIRN_CHECKPOINT", "auto"), Pair("CAIRN_DIR", "/d/other"),
                                         Pair("CAIRN_KEEP", "last=3"), Pair("CAIRN_REQUIRE", "yes")));
}

TEST(PluginOptions, RefusesWhatThePluginWould) {
  EXPECT_THAT(TakePluginOptions({"srun", "--checkpoint-colour=red", "./train"}).status().message(),
              HasSubstr("--checkpoint-colour=red is no option of Cairn's"));
  EXPECT_EQ(TakePluginOptions({"srun", "--checkpoint-dir"}).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace cairn
