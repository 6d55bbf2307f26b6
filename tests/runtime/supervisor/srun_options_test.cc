#include "runtime/supervisor/srun_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;

size_t End(const std::vector<std::string>& command) { return ReadSrunCommand(command).options_end; }

// "-c=2": the value is 2. "-l": there is none.
std::vector<std::string> Options(const std::vector<std::string>& command) {
  std::vector<std::string> out;
  for (const SrunOption& option : ReadSrunCommand(command).options)
    out.push_back(option.name + (option.value ? "=" + *option.value : ""));
  return out;
}

TEST(SrunOptions, EndWhereTheProgramBegins) {
  EXPECT_EQ(End({"srun", "-l", "--mpi=pmix", "--cpu-bind", "none", "-c2", "-c", "2", "./train", "-n"}), 8u);
  EXPECT_EQ(End({"srun", "--checkpoint", "--", "./train"}), 2u);
  EXPECT_EQ(End({"srun", "-", "x"}), 1u);
  EXPECT_EQ(End({"srun"}), 1u);
  EXPECT_EQ(End({"srun", "-c"}), 2u);
}

// `srun --help` of 22.05.8 has a "[" behind these; some have none at all in other versions.
TEST(SrunOptions, WhoseValueMayBeLeftOutTakeNoWord) {
  for (const char* option :
       {"--bcast", "--compress", "--exclusive", "--external-launcher", "--immediate", "-I",
        "--kill-on-bad-exit", "-K", "--nice", "--no-kill", "-k", "--oom-kill-step", "--overlap",
        "--propagate", "--pty", "--resv-ports", "--send-libs", "--x11", "--checkpoint"}) {
    EXPECT_EQ(End({"srun", option, "./train", "a"}), 2u) << option;
  }
  EXPECT_THAT(Options({"srun", "-I10", "-K0", "--x11=first", "--bcast=/tmp/p", "./train"}),
              ElementsAre("-I=10", "-K=0", "--x11=first", "--bcast=/tmp/p"));
}

TEST(SrunOptions, ThatNeedAValueTakeTheNextWord) {
  for (const char* option :
       {"-b", "-c", "-p", "-J", "--wait", "--mem", "--begin", "--checkpoint-dir", "--another-plugins-option"})
    EXPECT_EQ(End({"srun", option, "x", "./train"}), 3u) << option;
}

// As srun 22.05.8 was seen to take them: --lab is --label alone, --ntasks is one of its own, --no may be several.
TEST(SrunOptions, MayBeWrittenAsAnUnambiguousBeginning) {
  EXPECT_THAT(Options({"srun", "--lab", "--nodel=n1", "--ntasks", "4", "--checkpoint-di", "d", "./train"}),
              ElementsAre("--label", "--nodelist=n1", "--ntasks=4", "--checkpoint-dir=d"));
  EXPECT_THAT(Options({"srun", "--no", "4", "./train"}), ElementsAre("--no=4"));
}

TEST(SrunOptions, OfOneLetterMayShareAWord) {
  EXPECT_THAT(Options({"srun", "-luc", "2", "-Qp=high", "-vvK", "./train"}),
              ElementsAre("-l", "-u", "-c=2", "-Q", "-p==high", "-v", "-v", "-K"));
  EXPECT_EQ(End({"srun", "-luc", "2", "-vvK", "./train"}), 4u);
}

TEST(SrunOptions, NameTheStepAfterTheProgramOrAsTheyAreTold) {
  EXPECT_EQ(ReadSrunCommand({"srun", "-l", "/opt/app/train", "-J", "x"}).step_name, "train");
  EXPECT_EQ(ReadSrunCommand({"srun", "-J", "big", "--", "./train"}).step_name, "big");
  EXPECT_EQ(ReadSrunCommand({"srun", "--job-name=big", "./train"}).step_name, "big");
  EXPECT_EQ(ReadSrunCommand({"srun", "--", "train"}).step_name, "train");
  EXPECT_EQ(ReadSrunCommand({"srun", "-l"}).step_name, "");
}

}  // namespace
}  // namespace cairn
