#include "runtime/catalog/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>
#include <thread>

#include "tests/runtime/catalog/test_run.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

TEST(RunDirectory, KeepsItsIdentityOverLives) {
  TempDir temp;
  const auto first = RunDirectory::Open(temp / "a/b", "heat");
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->info().name, "heat");
  EXPECT_EQ(first->info().id.size(), 16u);
  EXPECT_EQ(RunDirectory::Open(temp / "a/b", "another name")->info(), first->info());
  EXPECT_EQ(RunDirectory::OpenExisting(temp / "a/b")->info(), first->info());
}

TEST(RunDirectory, IsOneRunForAllThatOpenItAtOnce) {
  TempDir temp;
  std::vector<std::string> ids(8);
  std::vector<std::thread> threads;
  for (std::string& id : ids) {
    threads.emplace_back([&] {
      const auto dir = RunDirectory::Open(temp / "run", "test");
      id = dir.ok() ? dir->info().id : dir.status().message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 1u) << ids[0] << " " << ids[1];
}

TEST(RunDirectory, ThatIsNoneIsSaidToBeNone) {
  TempDir temp;
  const Status status = RunDirectory::OpenExisting(temp.path()).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("holds no file RUN"));
}

TEST(RunDirectory, WithADamagedRunFileIsNeverTakenForANewOne) {
  TestRun run;
  run.FlipByte("RUN", 30);
  EXPECT_EQ(RunDirectory::Open(run.dir().path(), "test").status().code(), Code::kDamage);
}

TEST(RunDirectory, GivesItsModeToEverythingDurable) {
  TempDir temp;
  const auto dir = RunDirectory::Open(temp / "run", "test", 0640);
  ASSERT_TRUE(dir.ok());
  ASSERT_TRUE(dir->Journal(1, "{}").ok());
  struct stat st {};
  for (const char* name : {"RUN", "journal.jsonl"}) {
    ASSERT_EQ(stat(dir->PathOf(name).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0640u) << name;
  }
  ASSERT_EQ(stat(dir->path().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0750u);
}

TEST(Journal, AppendsWholeLinesFromManyWriters) {
  TestRun run;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 25; ++j) EXPECT_TRUE(run.dir().Journal(1, R"({"event":"saved"})").ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::ifstream journal(run.Path("journal.jsonl"));
  int lines = 0;
  for (std::string line; std::getline(journal, line); ++lines) EXPECT_EQ(line, R"({"event":"saved"})");
  EXPECT_EQ(lines, 100);
}

}  // namespace
}  // namespace cairn
