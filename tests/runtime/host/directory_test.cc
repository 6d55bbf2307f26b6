#include "runtime/host/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

namespace cairn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

StepIdentity Job() { return {12, 3, 0, std::nullopt, std::nullopt, "train", "me"}; }
StepIdentity ArrayTask() { return {22, 0, 0, 20, 5, "train", "me"}; }

class TempDir {
 public:
  TempDir() {
    std::string name = fs::temp_directory_path() / "cairn-host-XXXXXX";
    path = fs::canonical(mkdtemp(name.data()));
  }
  ~TempDir() { fs::remove_all(path); }
  fs::path path;
};

TEST(ExpandDirectory, FollowsTheTable) {
  struct Row {
    const char* text;
    StepIdentity step;
    const char* expected;
  };
  const Row rows[] = {
      {"/scratch/me/run7", Job(), "/scratch/me/run7"},
      {"/scratch/%u/%x-%j.%s", Job(), "/scratch/me/train-12.3"},
      {"/s/%A", Job(), "/s/12"},
      {"/s/100%%", Job(), "/s/100%"},
      {"run7", Job(), "/home/me/run7"},
      {"../run7/", Job(), "/home/run7"},
      {"/s//a/./b/", Job(), "/s/a/b"},
      {"/s/run", ArrayTask(), "/s/run/task-5"},
      {"/s/%A/%a", ArrayTask(), "/s/20/5"},
      {"/s/%j", ArrayTask(), "/s/22/task-5"},
      {"s3://bucket/%u//%x-%j/", Job(), "s3://bucket/me/train-12"},
      {"s3://bucket/run", ArrayTask(), "s3://bucket/run/task-5"},
  };
  for (const Row& row : rows) {
    const auto dir = ExpandDirectory("--checkpoint-dir", row.text, row.step, "/home/me");
    ASSERT_TRUE(dir.ok()) << row.text << ": " << dir.status().message();
    EXPECT_EQ(*dir, row.expected) << row.text;
  }
}

TEST(ExpandDirectory, RefusesWhatItCannotExpand) {
  for (const char* text : {"/s/%q", "/s/%", "/s/%a", "/s/a\nb"}) {
    const auto dir = ExpandDirectory("--checkpoint-copy", text, Job(), "/");
    EXPECT_EQ(dir.status().code(), Code::kInvalid) << text;
    EXPECT_THAT(dir.status().message(), HasSubstr("--checkpoint-copy=")) << text;
  }
}

TEST(ClaimDefaultDirectory, GivesEachUseOfANameItsOwnAndFindsThemAgainInTheNextLife) {
  const TempDir submit;
  const auto claim = [&](int restart, const std::string& name) {
    StepIdentity step = Job();
    step.restart = restart;
    auto dir = ClaimDefaultDirectory(submit.path.string(), step, name);
    return dir.ok() ? fs::path(*dir).lexically_relative(submit.path).string() : dir.status().message();
  };
  EXPECT_EQ(claim(0, "heat2d"), "cairn-12/heat2d");
  EXPECT_EQ(claim(0, "heat2d"), "cairn-12/heat2d-2");
  EXPECT_EQ(claim(0, "post"), "cairn-12/post");
  EXPECT_EQ(claim(1, "heat2d"), "cairn-12/heat2d");
  EXPECT_EQ(claim(1, "heat2d"), "cairn-12/heat2d-2");
  EXPECT_TRUE(fs::exists(submit.path / "cairn-12/.use/1.heat2d.2"));
}

TEST(ClaimDefaultDirectory, MakesAFileNameOfAnyStepName) {
  const TempDir submit;
  auto dir = ClaimDefaultDirectory(submit.path.string(), Job(), "../a b/%j");
  ASSERT_TRUE(dir.ok());
  EXPECT_EQ(*dir, (submit.path / "cairn-12/_._a_b__j").string());
}

TEST(DirectoryAllowed, HoldsPathsBelowTheListAndSeesThroughLinks) {
  const TempDir root;
  fs::create_directories(root.path / "scratch");
  fs::create_directories(root.path / "home");
  fs::create_directory_symlink(root.path / "home", root.path / "scratch/link");
  const std::string list = (root.path / "work").string() + ":" + (root.path / "scratch/").string();
  const auto allowed = [&](const std::string& dir) {
    return DirectoryAllowed((root.path / dir).string(), list);
  };
  EXPECT_TRUE(allowed("scratch"));
  EXPECT_TRUE(allowed("scratch/me/run7"));
  EXPECT_TRUE(allowed("work/x"));
  EXPECT_FALSE(allowed("scratch2/me"));
  EXPECT_FALSE(allowed("home/me"));
  EXPECT_FALSE(allowed("scratch/../home/me"));
  EXPECT_FALSE(allowed("scratch/link/me"));
  EXPECT_TRUE(DirectoryAllowed("/anywhere", ""));
  const std::string buckets = "s3://ours/runs/:" + list;
  EXPECT_TRUE(DirectoryAllowed("s3://ours/runs/me", buckets));
  EXPECT_FALSE(DirectoryAllowed("s3://ours/other", buckets));
  EXPECT_FALSE(DirectoryAllowed("s3://ours/runs/../other", buckets));
  EXPECT_FALSE(DirectoryAllowed("s3://theirs/runs", buckets));
  EXPECT_TRUE(DirectoryAllowed(root.path / "scratch/me", buckets));
  EXPECT_FALSE(DirectoryAllowed("s3://ours/runs", list));
}

}  // namespace
}  // namespace cairn
