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

  // Lines of the journal: a life that ended so.
  static std::string Life(const std::string& epoch, const std::string& time, const std::string& ending) {
    const std::string of = R"(,"time":")" + time + R"(","epoch":)" + epoch;
    return R"({"event":"life")" + of +
           R"(,"job":"22","step":"0","restart":0,"node":"n1","world_size":2})"
           "\n"
           R"({"event":"ending")" +
           of + R"(,"why":"w","count":9,)" + ending + "}\n";
  }

  std::string Read(const std::string& name) const {
    std::ifstream in(here_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // What it says.
  std::string Run(const std::string& srun, int max_lives) {
    Script("srun", srun);
    const pid_t pid = fork();  // it takes the signals of its process over
    if (pid == 0) {
      setenv("PATH", (here_.path() + ":" + getenv("PATH")).c_str(), 1);
      dup2(open((here_ / "said").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      SuperviseOptions options;
      options.job = 22;
      options.max_lives = max_lives;
      options.command = {"srun", "./train"};
      _exit(Supervise(options).ok() ? 0 : 9);
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
  std::ofstream(here_ / "life") << Life("1", UtcNow(), R"("cause":"resize","nodes":"1")");
  const std::string said = Run(R"(echo $here/run >$CAIRN_RUN_REPORT
echo $CAIRN_RUN_JOB >>$here/jobs
[ $CAIRN_RUN_LIFE = 1 ] && exit 0
cat $here/life >>$here/run/)" + std::string(names::kJournal),
                               2);
  EXPECT_THAT(said, HasSubstr("life 0 (step 20_3.0, "));
  EXPECT_EQ(Read("updates"), "update JobId=20_3 NumNodes=1\n");
  EXPECT_EQ(Read("jobs"), "22\n22\n");
}

TEST_F(SuperviseTest, LeavesTheLivesOfAnEarlierRunInTheSameJobAlone) {
  std::ofstream(run_.PathOf(names::kJournal))
      << Life("1", "2026-03-01T12:00:00Z", R"("cause":"interrupted")");
  EXPECT_THAT(Run("echo $here/run >$CAIRN_RUN_REPORT; exit 1", 1), HasSubstr("no rank opened a session"));
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

}  // namespace
}  // namespace cairn
