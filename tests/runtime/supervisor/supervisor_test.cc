// Supervise, with an srun and an scontrol that are shell scripts.
#include "runtime/supervisor/supervisor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/catalog/run_directory.h"
#include "runtime/formats/manifest.h"
#include "runtime/formats/names.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using testing::HasSubstr;

// Task 3 of the array 20 on two nodes, and the directory of a run.
class SuperviseTest : public testing::Test {
 protected:
  SuperviseTest() : run_(*RunDirectory::Open(here_ / "run", "test")) {
    Script("scontrol", R"(case "$*" in
update*) echo "$*" >>$here/updates ;;
*) echo "JobId=22 ArrayJobId=20 ArrayTaskId=3 JobState=RUNNING NodeList=n[1-2] NumNodes=2 NumCPUs=2" ;;
esac)");
  }

  void Script(const std::string& name, const std::string& body) {
    std::ofstream(here_ / name) << "#!/bin/sh\nhere=" << here_.path() << "\n" << body << "\n";
    std::filesystem::permissions(here_ / name, std::filesystem::perms::owner_all);
  }

  // Lines of the journal, of a node with a wrong clock: a life that ended so. A RUN_LIFE in them is to be replaced.
  static std::string Life(const std::string& ending) {
    const std::string of = R"(,"time":"2026-03-01T12:00:00Z","epoch":1)";
    return R"({"event":"life")" + of +
           R"(,"job":"22","step":"0","restart":0,"node":"n1","world_size":2,"run_life":"RUN_LIFE"})"
           "\n"
           R"({"event":"ending")" +
           of + R"(,"why":"w","count":9,)" + ending + "}\n";
  }
  // For srun: this life has left these lines.
  static std::string LeavesLife() {
    return R"(sed "s/RUN_LIFE/$CAIRN_RUN_ID.$CAIRN_RUN_LIFE/" $here/life >>$here/run/)" +
           std::string(names::kJournal) + "\n";
  }

  std::string Read(const std::string& name) const {
    std::ifstream in(here_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // What it says.
  std::string Run(const std::string& srun, int max_lives, const std::vector<std::string>& unplugged = {}) {
    Script("srun", srun);
    const pid_t pid = fork();  // it takes the signals of its process over
    if (pid == 0) {
      setenv("PATH", (here_.path() + ":" + getenv("PATH")).c_str(), 1);
      dup2(open((here_ / "said").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      SuperviseOptions options;
      options.job = 22;
      options.max_lives = max_lives;
      options.command = {"srun", "./train"};
      options.plugin = unplugged.empty();
      options.program = here_ / "host";
      if (!unplugged.empty()) options.command = unplugged;
      setenv("CAIRN_CHECKPOINT", "auto", 1);
      setenv("SLURM_CAIRN_TOKEN", "of an outer step", 1);
      setenv("CAIRN_HOST_NAME", "of an outer step", 1);
      setenv("CAIRN_SITE_DIRS", "of an outer step", 1);
      const auto code = Supervise(options);
      if (!code.ok()) std::fprintf(stderr, "%s\n", code.status().message().c_str());
      _exit(code.ok() || !unplugged.empty() ? 0 : 9);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    return Read("said");
  }

  TempDir here_;
  RunDirectory run_;
};

TEST_F(SuperviseTest, NamesTheTaskOfAnArrayAndNotTheArray) {
  std::ofstream(here_ / "life") << Life(R"("cause":"resize","nodes":"1")");
  const std::string said = Run(R"(echo $here/run >$CAIRN_RUN_REPORT
echo $CAIRN_RUN_JOB >>$here/jobs
[ $CAIRN_RUN_LIFE = 1 ] && exit 0
)" + LeavesLife(),
                               2);
  EXPECT_THAT(said, HasSubstr("life 0 (step 20_3.0, "));
  EXPECT_EQ(Read("updates"), "update JobId=20_3 NumNodes=1\n");
  EXPECT_EQ(Read("jobs"), "22\n22\n");
}

TEST_F(SuperviseTest, TriesAResizeAgainWhenSlurmAsksForItWhereThatHelps) {
  struct Case {
    std::string accounts, updates, said;
  };
  const std::string update = "update JobId=22 NumNodes=1\n";
  for (const Case& c : {Case{"slurmdbd", update + update, ""}, Case{"none", update, "no resize to 1: "}}) {
    std::filesystem::remove(here_ / "updates");
    Script("scontrol", R"(case "$*" in
update*) echo "$*" >>$here/updates; [ $(wc -l <$here/updates) = 2 ] || { echo "try again in a bit" >&2; exit 1; } ;;
"show config") echo "AccountingStorageType   = accounting_storage/)" +
                           c.accounts +
                           R"(" ;;
*) echo "JobId=22 JobState=RUNNING NodeList=n[1-2] NumNodes=2 NumCPUs=2" ;;
esac)");
    std::ofstream(here_ / "life") << Life(R"("cause":"resize","nodes":"1")");
    const std::string said = Run(R"(echo $here/run >$CAIRN_RUN_REPORT
[ $CAIRN_RUN_LIFE = 1 ] && exit 0
)" + LeavesLife(),
                                 2);
    EXPECT_EQ(Read("updates"), c.updates);
    EXPECT_EQ(said.find("no resize") != std::string::npos, !c.said.empty());
    EXPECT_THAT(said, HasSubstr(c.said));
  }
}

TEST_F(SuperviseTest, LeavesTheLivesOfAnEarlierRunInTheSameJobAlone) {
  std::ofstream(run_.PathOf(names::kJournal)) << Life(R"("cause":"interrupted")");
  EXPECT_THAT(Run("echo $here/run >$CAIRN_RUN_REPORT; exit 1", 1), HasSubstr("no rank opened a session"));
}

TEST_F(SuperviseTest, TellsTheTasksToEndOnceSlurmAnswersAgain) {
  Script("scontrol", R"(echo asked >>$here/asked
[ -e $here/told_us ] && [ ! -e $here/refused ] && { touch $here/refused; echo "no answer" >&2; exit 1; }
echo "JobId=22 JobState=RUNNING NodeList=n[1-2] NumNodes=2 NumCPUs=2")");
  Script("scancel", R"(echo "$*" >$here/cancels; mv $here/cancels $here/cancelled)");
  std::ofstream(here_ / "life") << Life(R"("cause":"unknown")");
  const std::string said = Run("echo $here/run >$CAIRN_RUN_REPORT\n" + LeavesLife() +
                                   "touch $here/told_us; kill -TERM $PPID\n"
                                   "while [ ! -e $here/cancelled ]; do sleep 0.02; done; exit 143",
                               2);
  EXPECT_THAT(said,
              HasSubstr("not told to end yet, since Slurm does not say how the job stands: scontrol show "
                        "failed with exit status 1: no answer"));
  EXPECT_EQ(Read("cancelled"), "--signal=TERM 22.0\n");
  EXPECT_THAT(said, HasSubstr("told to end"));
}

TEST_F(SuperviseTest, TakesOnlyASecondInterruptForTheEnd) {
  // Each goes from srun to us, and from us to srun.
  const auto interrupted = [](const std::string& times) {
    return "n=0; trap 'n=$((n + 1))' INT\nfor i in " + times +
           "; do kill -INT $PPID; while [ $n -lt $i ]; do sleep 0.01; done; done; exit 1";
  };
  EXPECT_THAT(Run(interrupted("1"), 1), HasSubstr("no rank opened a session"));
  EXPECT_THAT(Run(interrupted("1 2"), 1), HasSubstr("told to end"));
}

// Writes down what it is called with, and how protected it is.
constexpr char kTellingSrun[] =
    R"(echo "$* ${SLURM_CAIRN_TOKEN-unprotected} ${SLURM_TASK_PROLOG##*/}" >>$here/lives
exit $((1 - CAIRN_RUN_LIFE)))";
constexpr char kProtects[] = R"(printf 'env SLURM_CAIRN_TOKEN=new\nend\n' >&3; cat <&3)";
constexpr char kShape[] = "--nodes=2 --ntasks=2 --kill-on-bad-exit=1 --ntasks-per-node=1 ";

TEST_F(SuperviseTest, WithoutThePluginIsTheHostOfEachLifeAndNamesItAfterTheProgram) {
  Script("host",
         "echo $CAIRN_PLUGIN_CAIRN_DIR $CAIRN_HOST_NAME $CAIRN_HOST_STEP $CAIRN_SITE_DIRS >>$here/hosts\n" +
             std::string(kProtects));
  Run(kTellingSrun, 2, {"srun", "--checkpoint-dir=d", "-l", "bin/train"});
  EXPECT_EQ(Read("lives"), std::string(kShape) + "-l bin/train new task-prolog\n" + kShape +
                               "-l bin/train new task-prolog\n");
  EXPECT_EQ(Read("hosts"), "d train 0\nd train 1\n");
}

TEST_F(SuperviseTest, WithoutThePluginObeysCheckpointOff) {
  Script("host", "touch $here/hosts");
  Run(kTellingSrun, 1, {"srun", "--checkpoint=off", "./train"});
  EXPECT_EQ(Read("lives"), std::string(kShape) + "./train unprotected \n");
  EXPECT_FALSE(std::filesystem::exists(here_ / "hosts"));
}

TEST_F(SuperviseTest, WithoutThePluginRunsUnprotectedWhereTheHostCannotUnlessProtectionIsRequired) {
  Script("host", "echo off no port is free >&3");
  EXPECT_THAT(Run(kTellingSrun, 1, {"srun", "./train"}),
              AllOf(HasSubstr("cairn: NOT PROTECTED: "),
                    HasSubstr("host does not start checkpointing: no port is free")));
  EXPECT_EQ(Read("lives"), std::string(kShape) + "./train unprotected \n");
  EXPECT_THAT(Run(kTellingSrun, 1, {"srun", "--checkpoint-require", "./train"}),
              HasSubstr("no port is free"));
  Script("host", "echo fail no such directory >&3");
  EXPECT_THAT(Run(kTellingSrun, 1, {"srun", "./train"}), HasSubstr("no such directory"));
  EXPECT_EQ(Read("lives"), std::string(kShape) + "./train unprotected \n");
}

TEST_F(SuperviseTest, WithoutThePluginBeginsNoLaterLifeUnprotected) {
  Script("host", "[ $CAIRN_HOST_STEP = 0 ] || exit 1\n" + std::string(kProtects));
  EXPECT_THAT(Run(kTellingSrun, 2, {"srun", "./train"}), HasSubstr("would be unprotected, and begin from"));
  EXPECT_EQ(Read("lives"), std::string(kShape) + "./train new task-prolog\n");
}

}  // namespace
}  // namespace cairn
