// cairn rehearse, of a process without Slurm. (Of ranks that srun starts: tests/slurm/rehearse.bats.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/runtime/command/program.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(CairnRehearse, SaysWhichCheckpointTheCommandDidNotMakeAndHowItEnded) {
  const std::string dir = NewFolder();
  const Outcome outcome = Rehearse(dir, {"--until=60"}, {"--steps", "50"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("ended with exit status 0 and left no checkpoint of step 60 in " + dir +
                                     "/cairn-rehearsal-"));
  // As by the terminal, which interrupts both.
  const Outcome killed =
      RunCairn({"rehearse", "--dir", NewFolder(), "--", "sh", "-c", "kill -INT $PPID; kill -INT $$"});
  EXPECT_EQ(killed.code, 3);
  EXPECT_THAT(killed.err, HasSubstr("ended by signal 2 "));
  EXPECT_EQ(Rehearse(NewFolder(), {"--until=20"}, {}).code, 2);
  EXPECT_EQ(Rehearse(NewFolder(), {"--ranks=2"}, {}).code, 2);
}

// The stand-in for srun saves nothing, so this goes no further than the first life.
TEST(CairnRehearse, KeepsItsRunsApartFromTheOneThatTheJobOrTheUserHasChosen) {
  const std::string dir = NewFolder(), srun = dir + "/srun";
  WriteText(srun, "#!/bin/sh\nenv >" + dir + "/given\necho \"$*\" >" + dir + "/line\n");
  std::filesystem::permissions(srun, std::filesystem::perms::owner_all);
  RunCairn({"rehearse", "--dir", dir, "--", srun, "--checkpoint=10m", "-n1", "--checkpoint-dir=/of/the/line",
            "--checkpoint-from=/another", "--checkpoint-rehearse=ranks=2", "--checkpoint-attach=torch",
            "./program", "--checkpoint-dir=/of/the/program"},
           {{"_SLURM_SPANK_OPTION_cairn_checkpoint_dir", "/of/the/job"},
            {"SLURM_SPANK__SLURM_SPANK_OPTION_cairn_checkpoint", "5"},
            {"_SLURM_SPANK_OPTION_pyxis_container_image", "kept"},
            {"SLURM_CAIRN_DIR", "/of/the/step"},
            {"CAIRN_RUN_DIR", "/of/the/run"},
            {"CAIRN_RESUME", "never"},
            {"CAIRN_FROM", "/another"},
            {"CAIRN_COPY", "/archive"},
            {"CAIRN_REHEARSE", "on"},
            {"CAIRN_ATTACH", "none"},
            {"CAIRN_LOCAL", "none"},
            {"CAIRN_DIR", "/of/the/user"}});
  const std::string given = ReadText(dir + "/given");
  EXPECT_THAT(given, HasSubstr("_SLURM_SPANK_OPTION_pyxis_container_image=kept"));
  EXPECT_THAT(given, HasSubstr("\nCAIRN_DIR=" + dir + "/cairn-rehearsal-"));
  EXPECT_THAT(given, HasSubstr("\nCAIRN_CHECKPOINT=on\n"));
  EXPECT_THAT(given, HasSubstr("\nCAIRN_REHEARSAL=20,25\n"));
  EXPECT_THAT(given, HasSubstr("\nCAIRN_ATTACH=torch\n"));
  EXPECT_THAT(given, HasSubstr("\nCAIRN_LOCAL=none\n"));
  for (const char* name : {"SPANK_OPTION_cairn", "SLURM_CAIRN_", "CAIRN_RUN_", "CAIRN_RESUME", "CAIRN_FROM",
                           "CAIRN_COPY", "CAIRN_REHEARSE"})
    EXPECT_THAT(given, Not(HasSubstr(name)));
  EXPECT_EQ(ReadText(dir + "/line"), "-n1 ./program --checkpoint-dir=/of/the/program\n");
}

TEST(CairnRehearse, NamesABlobThatDiffersOrIsNotInBothRunsThoughAllArraysAreEqual) {
  const Outcome differs = Rehearse(NewFolder(), {}, {"--forgetful-note"});
  EXPECT_EQ(differs.code, 1) << differs.err;
  EXPECT_THAT(differs.out, HasSubstr("\n2 of 2 arrays equal\nblob note differs on ranks 0\n"));

  // Only the resumed life has CAIRN_FROM.
  const Outcome renamed =
      RunCairn({"rehearse", "--dir", NewFolder(), "--", "sh", "-c",
                "exec " CAIRN_TOY " --n 100 --step-us 0 --note-name note${CAIRN_FROM:+2}"},
               {{"CAIRN_MATCH", "allow-missing,allow-extra"}});
  EXPECT_EQ(renamed.code, 1) << renamed.err;
  EXPECT_THAT(
      renamed.out,
      HasSubstr("\nblob note is in the undisturbed run alone\nblob note2 is in the resumed run alone\n"));
}

}  // namespace
}  // namespace cairn
