// What the command line says of words and numbers that it does not take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/command/program.h"

namespace cairn {
namespace {

using ::testing::StartsWith;

std::string Refusal(const std::vector<std::string>& arguments) {
  const Outcome outcome = RunCairn(arguments);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  return outcome.err;
}

TEST(CommandLine, NamesTheWordThatIsNoCommandAndTheNearestOne) {
  const std::string rest = " `cairn --help` lists all\n";
  EXPECT_EQ(Refusal({"sttus"}), "cairn: there is no command \"sttus\"; did you mean \"status\"?" + rest);
  EXPECT_EQ(Refusal({"plna", "run"}), "cairn: there is no command \"plna\"; did you mean \"plan\"?" + rest);
  EXPECT_EQ(Refusal({"lss"}), "cairn: there is no command \"lss\"; did you mean \"ls\"?" + rest);
  EXPECT_EQ(Refusal({"foo"}), "cairn: there is no command \"foo\";" + rest);  // two letters off "fork"
  EXPECT_THAT(Refusal({}), StartsWith("A subcommand is required\n"));
}

TEST(CommandLine, SaysWhichNumbersItTakes) {
  const std::string of_int = " is no whole number from 1 to 2147483647\n";
  EXPECT_THAT(Refusal({"resize", "1", "0"}), StartsWith("N: \"0\"" + of_int));
  EXPECT_THAT(Refusal({"resize", "1", "99999999999"}), StartsWith("N: \"99999999999\"" + of_int));
  EXPECT_THAT(Refusal({"rehearse", "--ranks", "2x", "true"}), StartsWith("--ranks: \"2x\"" + of_int));
  EXPECT_THAT(Refusal({"rehearse", "--until", "1.5", "true"}), StartsWith("--until: \"1.5\"" + of_int));
  EXPECT_THAT(Refusal({"run", "--max-nodes=-1", "srun"}), StartsWith("--max-nodes: \"-1\"" + of_int));
  EXPECT_THAT(Refusal({"runs", "-n", "0"}), StartsWith("--number: \"0\"" + of_int));
  EXPECT_THAT(Refusal({"plan", "/x", "--ranks", "0"}),
              StartsWith("--ranks: \"0\" is no whole number from 1 to 1048576\n"));
  EXPECT_THAT(Refusal({"rehearse", "--tolerance", "inf", "true"}),
              StartsWith("--tolerance: \"inf\" is no number from 0 on\n"));
  EXPECT_THAT(Refusal({"rehearse", "--tolerance=-1e-3", "true"}),
              StartsWith("--tolerance: \"-1e-3\" is no number from 0 on\n"));
  for (const char* threads : {"1", "256"})
    EXPECT_THAT(RunCairn({"verify", "/nothing", "--threads", threads}).err, StartsWith("cairn: /nothing"));
}

TEST(CommandLine, SaysWhichWordsItTakes) {
  EXPECT_THAT(Refusal({"export", "/x", "/y", "--to", "zip"}),
              StartsWith("--to: zip not in {safetensors,hf,dcp}\n"));
  EXPECT_THAT(Refusal({"run", "--ntasks-from", "foo", "srun"}),
              StartsWith("--ntasks-from: Check foo value in {cpus->1,gpus->2,nodes->0} OR {1,2,0} FAILED\n"));
  EXPECT_THAT(Refusal({"run", "--ntasks-from", "GPUS", "ls"}),
              StartsWith("cairn: the command must begin with srun"));
}

}  // namespace
}  // namespace cairn
