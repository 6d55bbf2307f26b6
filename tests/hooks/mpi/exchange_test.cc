// Restores of real MPI programs whose ranks hand each other what they read over MPI. Bytes read are those that the kernel counted.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "tests/multiprocess/launcher.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kBytes = (2 * 2000 * 1000 + (2 << 20) / 1000 * 1000) * 8;  // of all arrays

Step::Options MpiStep(const std::string& dir, int ranks, int life,
                      const std::vector<std::string>& words = {}) {
  Step::Options options{.ranks = ranks,
                        .dir = dir,
                        .env = {{"CAIRN_ON", "request"}, {"CAIRN_EXCHANGE", "mpi"}},
                        .restart = life};
  options.launcher = {CAIRN_MPIRUN,
                      "--allow-run-as-root",
                      "--oversubscribe",
                      "--mca",
                      "plm",
                      "isolated",
                      "--mca",
                      "ras",
                      "^slurm",
                      "-n",
                      std::to_string(ranks)};
  options.program = {CAIRN_MPI_PROGRAM};
  options.program.insert(options.program.end(), words.begin(), words.end());
  return options;
}

// Of the lines "rank R: WORD REST" of a step: REST by R.
std::map<int, std::string> Said(Step& step, const std::string& word) {
  std::map<int, std::string> said;
  std::istringstream lines(step.rank(0).Out());
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(": " + word + " ");
    if (line.starts_with("rank ") && at != std::string::npos)
      said[std::stoi(line.substr(5))] = line.substr(at + word.size() + 3);
  }
  return said;
}

void Save(const std::string& dir, int ranks, int life = 0) {
  Step step(MpiStep(dir, ranks, life, {"saves", "1"}));
  ASSERT_TRUE(step.Join()) << step.Log();
  ASSERT_EQ(step.rank(0).exit_code(), 0) << step.Log();
  ASSERT_THAT(step.Log(), HasSubstr("saved step"));
}

// Restores, and expects that all is as it was saved, and `communicators` ("made freed") of all ranks. What the ranks have, by rank.
std::map<int, std::string> Restore(Step::Options options, const std::string& how,
                                   const std::string& communicators) {
  const int ranks = options.ranks;
  Step step(std::move(options));
  EXPECT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(step.rank(0).exit_code(), 0) << step.Log();
  EXPECT_THAT(step.Log(), HasSubstr(how));
  auto said = Said(step, "wrong");
  EXPECT_EQ(said.size(), static_cast<size_t>(ranks)) << step.Log();
  for (const auto& [rank, text] : said) EXPECT_THAT(text, HasSubstr("0 hash ")) << "rank " << rank;
  for (const auto& [rank, made_freed] : Said(step, "communicators"))
    EXPECT_EQ(made_freed, communicators) << "rank " << rank;
  int64_t sum = 0;
  for (const auto& [rank, bytes] : Said(step, "read")) sum += std::stoll(bytes);
  if (sum > 0) {
    EXPECT_LE(sum, kBytes * 105 / 100) << step.Log();
  }
  return said;
}

class MpiExchange : public ::testing::Test {
 protected:
  const TempDir tmp_;
  const std::string dir_ = tmp_.path() + "/run";
};

TEST_F(MpiExchange, BringsTheSameBytesAsSocketsDoToAnotherNumberOfRanksAndReadsThemOnce) {
  Save(dir_, 2);
  Step::Options sockets = MpiStep(dir_, 3, 1);
  sockets.env["CAIRN_EXCHANGE"] = "tcp";
  const auto expected = Restore(sockets, " of state in ", "0 0");
  EXPECT_EQ(Restore(MpiStep(dir_, 3, 2, {"deaf", "1"}), " of state over MPI in ", "1 1"), expected);
}

TEST_F(MpiExchange, IsNotUsedWhereTheMembersAreInAnotherOrderThanTheRanksOfMpi) {
  Save(dir_, 2);
  Restore(MpiStep(dir_, 2, 1, {"reversed", "1"}),
          "--checkpoint-exchange=mpi cannot be had: the ranks hand each other what they read by sockets, "
          "not over MPI: rank 0: the session's member 0 of 2 is rank 1 of 2 in MPI_COMM_WORLD",
          "0 0");
}

TEST_F(MpiExchange, IsUsedUnaskedOnlyWhereNoOtherThreadCanBeInMpi) {
  Save(dir_, 2);
  const auto at_level = [&](int life, const char* level) {
    Step::Options options = MpiStep(dir_, 2, life, {"spread", "1", "threads", level});
    options.env["CAIRN_EXCHANGE"] = "auto";
    return options;
  };
  Restore(at_level(1, "1"), " of state over MPI in ", "1 1");
  Restore(at_level(2, "2"), "by sockets, not over MPI: rank 0: the program has MPI_THREAD_SERIALIZED", "0 0");
  Step::Options asked = at_level(3, "2");
  asked.env["CAIRN_EXCHANGE"] = "mpi";
  Restore(asked, " of state over MPI in ", "1 1");
}

// Not after a long time, but when that rank says so.
TEST_F(MpiExchange, IsNotUsedWhereOneRanksMpiMakesNoCommunicator) {
  Save(dir_, 3);
  Step step(MpiStep(dir_, 2, 1, {"refuses", "1"}));
  ASSERT_TRUE(WaitFor([&] { return Said(step, "wrong").size() == 2; })) << step.Log();
  EXPECT_THAT(step.Log(), HasSubstr("by sockets, not over MPI: rank 1: MPI: "));
  EXPECT_THAT(step.Log(), HasSubstr(" of state in "));
}

TEST_F(MpiExchange, DamageThatOneRankFindsEndsItForAllAndTheOlderCheckpointIsLoadedBySockets) {
  Save(dir_, 3);
  Save(dir_, 3, 1);
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    if (entry.path().filename().string().starts_with("step-000000000002")) newest = entry.path();
  }
  std::string shard;
  for (const auto& entry : std::filesystem::directory_iterator(newest)) {
    if (entry.path().filename().string().starts_with("shard-00002") && entry.path().extension() != ".sums")
      shard = entry.path();
  }
  ASSERT_NE(shard, "");
  const auto size = std::filesystem::file_size(shard);
  const int fd = open(shard.c_str(), O_RDWR);
  char byte = 0;
  ASSERT_EQ(pread(fd, &byte, 1, static_cast<off_t>(size / 2)), 1);
  byte ^= 1;
  ASSERT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(size / 2)), 1);
  close(fd);
  Step step(MpiStep(dir_, 2, 2));
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_THAT(step.Log(), HasSubstr("is damaged and passed over"));
  EXPECT_THAT(step.Log(), HasSubstr("resumed at step 1 "));
  EXPECT_THAT(step.Log(), Not(HasSubstr("over MPI in")));  // what was given up may still be under way there
  EXPECT_THAT(step.Log(), Not(HasSubstr("cannot hand data to each other")));
  for (const auto& [rank, text] : Said(step, "wrong")) EXPECT_THAT(text, HasSubstr("0 hash "));
  EXPECT_EQ(Said(step, "communicators"), (std::map<int, std::string>{{0, "1 0"}, {1, "1 0"}}));
}

// mpirun is told to let the others live.
TEST_F(MpiExchange, ARankThatDiesInItEndsTheRestoreOfAll) {
  Save(dir_, 2);
  Step::Options dies = MpiStep(dir_, 3, 1, {"dies", "1"});
  dies.launcher.emplace_back("--enable-recovery");
  Step step(dies);
  ASSERT_TRUE(WaitFor([&] { return Said(step, "read").size() == 2; })) << step.Log();
  for (const auto& [rank, text] : Said(step, "restore"))
    EXPECT_THAT(text, HasSubstr("rank 1 is gone")) << "rank " << rank;
  EXPECT_THAT(step.Log(), Not(HasSubstr("damaged")));
}

#ifdef CAIRN_PRELOAD
TEST_F(MpiExchange, IsNotUsedWhereTheProgramsMpiHasAnotherBinaryInterface) {
  Step step({.ranks = 2,
             .dir = dir_,
             .args = {"--steps", "3", "--save-at", "2", "--wait-at", "2", "--no-finalize"}});
  ASSERT_TRUE(step.Join()) << step.Log();
  Step resumed({.ranks = 2,
                .dir = dir_,
                .args = {"--steps", "3"},
                .env = {{"CAIRN_EXCHANGE", "mpi"},
                        {"LD_PRELOAD", std::string(CAIRN_PRELOAD) + ":" + CAIRN_MPI_STANDIN}},
                .restart = 1});
  ASSERT_TRUE(resumed.Join()) << resumed.Log();
  EXPECT_THAT(resumed.Log(),
              HasSubstr("by sockets, not over MPI: rank 0: the program's MPI is \"Another MPI 4.1\""));
  EXPECT_THAT(resumed.Log(), HasSubstr("resumed at step 2"));
}
#endif

}  // namespace
}  // namespace cairn::testing
