// cairn rehearse, of a process without Slurm. (Of ranks that srun starts: tests/slurm/rehearse.bats.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/runtime/command/program.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

Outcome Rehearse(const std::string& dir, std::vector<std::string> options,
                 const std::vector<std::string>& toy) {
  options.insert(options.begin(), {"rehearse", "--dir", dir});
  options.insert(options.end(), {"--", CAIRN_TOY, "--n", "100", "--step-us", "0"});
  options.insert(options.end(), toy.begin(), toy.end());
  return RunCairn(options);
}

TEST(CairnRehearse, FindsNothingInAProgramThatRegistersAllItNeeds) {
  const std::string dir = NewFolder();
  const Outcome outcome = Rehearse(dir, {}, {"--steps", "1000"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      HasSubstr(
          "\nsaved at step 20 by 1 rank, resumed by 1 rank, compared at step 25\n2 of 2 arrays equal\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nresumed 0 "));
  EXPECT_THAT(outcome.out, HasSubstr("\nresumed 20 "));
  EXPECT_TRUE(std::filesystem::is_empty(dir));
}

TEST(CairnRehearse, NamesWhatWasComputedFromSomethingThatIsNotRegistered) {
  const std::string dir = NewFolder();
  const Outcome outcome = Rehearse(dir, {"--save-at=3", "--until=5"}, {"--forgetful"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  // At step 5 the number that was lost at step 3 had been added as 1.5 and 2.0, and is now as 0 and 0.5.
  EXPECT_THAT(outcome.out, HasSubstr("\nu      F64    [100]  differs        100        3 "));
  EXPECT_THAT(outcome.out, HasSubstr("\n1 of 2 arrays equal\n"));
  EXPECT_FALSE(std::filesystem::is_empty(dir));
  EXPECT_EQ(RunCairn({"rehearse", "--tolerance=1", "--dir", dir, "--save-at=3", "--until=5", "--", CAIRN_TOY,
                      "--forgetful"})
                .code,
            0);
}

TEST(CairnRehearse, SaysWhichCheckpointTheCommandDidNotMake) {
  const Outcome outcome = Rehearse(NewFolder(), {"--until=60"}, {"--steps", "50"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("left no checkpoint of step 60"));
  EXPECT_EQ(Rehearse(NewFolder(), {"--until=20"}, {}).code, 2);
  EXPECT_EQ(Rehearse(NewFolder(), {"--ranks=2"}, {}).code, 2);
}

}  // namespace
}  // namespace cairn
