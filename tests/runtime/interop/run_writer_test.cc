#include "runtime/interop/run_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/lives.h"
#include "runtime/catalog/marks.h"
#include "runtime/catalog/verify.h"
#include "runtime/formats/names.h"
#include "runtime/interop/box_file.h"
#include "runtime/interop/checkpoint_source.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const ArraySpec kMatrix{"m", DType::kI32, false, {4, 3}};

// Of the matrix whose elements are 0, 1, 2, … the rows from `first`.
Result<Index> WriteRows(const std::string& folder, uint32_t number, int64_t first, int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count * 3));
  std::iota(values.begin(), values.end(), static_cast<int32_t>(first * 3));
  return WriteBoxFile(folder, number, std::vector<ArrayBox>{{kMatrix, {{first, 0}, {count, 3}}}},
                      [&](size_t) { return reinterpret_cast<const std::byte*>(values.data()); });
}

struct Saved {
  Result<std::string> name{Status(Code::kInternal, "not saved")};
  std::string folder;
};

Saved SaveMatrix(RunWriter& writer, std::optional<int64_t> step, const std::string& tag = "") {
  Saved saved;
  const auto folder = writer.Begin(step);
  EXPECT_TRUE(folder.ok()) << folder.status().message();
  if (!folder.ok()) return saved;
  std::vector<Index> parts;
  for (uint32_t rank = 0; rank < 2; ++rank) parts.push_back(*WriteRows(*folder, rank + 1, 2 * rank, 2));
  saved.folder = *folder;
  saved.name = writer.Commit({*folder, 2, parts, {{{"notes", BlobPolicy::kMerge, {"here", {}}}}}, tag, {}});
  return saved;
}

std::vector<int64_t> StepsOfLine(const std::string& path) {
  std::vector<int64_t> steps;
  const auto listing = ListCheckpoints(*RunDirectory::OpenExisting(path));
  for (const Checkpoint& one : Candidates(*listing)) steps.push_back(one.id.step);
  return steps;
}

TEST(RunWriter, MakesACheckpointAsAnyOther) {
  const TempDir tmp;
  auto writer = RunWriter::Open(tmp / "run");
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  const Saved saved = SaveMatrix(**writer, 7, "best");
  ASSERT_TRUE(saved.name.ok()) << saved.name.status().message();
  const RunDirectory dir = *RunDirectory::OpenExisting(tmp / "run");
  auto source = CheckpointSource::Open(dir, *saved.name);
  ASSERT_TRUE(source.ok()) << source.status().message();
  ASSERT_THAT((*source)->arrays(), ElementsAre(kMatrix));
  int32_t column[4];
  ASSERT_TRUE((*source)->Read(0, {{0, 2}, {4, 1}}, std::as_writable_bytes(std::span(column))).ok());
  EXPECT_THAT(column, ElementsAre(2, 5, 8, 11));
  const Manifest& manifest = (*source)->checkpoint().manifest;
  EXPECT_EQ(manifest.step, 7);
  EXPECT_EQ(manifest.world_size, 2u);
  EXPECT_EQ((*source)->checkpoint().blobs.items[0].by_rank[0], "here");
  EXPECT_THAT(*ReadTags(dir), ElementsAre(std::pair<const std::string, std::string>("best", *saved.name)));
  ASSERT_TRUE((*writer)->Close().ok());
  const std::vector<LifeStory> lives = *ReadLives(dir);
  ASSERT_EQ(lives.size(), 1u);
  EXPECT_EQ(lives[0].ranks, 2);
  EXPECT_EQ(lives[0].last_saved_step, 7);
  EXPECT_EQ(lives[0].why, "its owner gave the directory back");
  // Nobody has to wait for an owner that has left.
  EXPECT_TRUE(RunWriter::Open(tmp / "run").ok());
}

TEST(RunWriter, GoesOnFromTheNewestOfAnEarlierStep) {
  const TempDir tmp;
  const std::string path = tmp / "run";
  auto first = *RunWriter::Open(path);
  for (const int64_t step : {10, 20, 30}) ASSERT_TRUE(SaveMatrix(*first, step).name.ok());
  EXPECT_THAT(StepsOfLine(path), ElementsAre(30, 20, 10));
  ASSERT_TRUE(first->Close().ok());

  auto second = *RunWriter::Open(path);
  ASSERT_TRUE(SaveMatrix(*second, {}).name.ok());
  EXPECT_THAT(StepsOfLine(path), ElementsAre(31, 30, 20, 10));
  ASSERT_TRUE(SaveMatrix(*second, 25).name.ok());  // the same owner goes back
  EXPECT_THAT(StepsOfLine(path), ElementsAre(25, 20, 10));
  ASSERT_TRUE(SaveMatrix(*second, 5).name.ok());
  EXPECT_THAT(StepsOfLine(path), ElementsAre(5));
  EXPECT_EQ(ListCheckpoints(*RunDirectory::OpenExisting(path))->checkpoints.size(), 6u);
}

TEST(RunWriter, GivesUpWhatWasBegunForWhatIsBegunNext) {
  const TempDir tmp;
  auto writer = *RunWriter::Open(tmp / "run");
  const std::string slow = *writer->Begin(1);
  const std::vector<Index> of_slow{*WriteRows(slow, 1, 0, 4)};
  const std::string next = *writer->Begin(2);
  EXPECT_FALSE(fs::exists(slow));
  const auto late = writer->Commit({slow, 1, of_slow, {}, "", {}});
  EXPECT_EQ(late.status().code(), Code::kInvalid);
  EXPECT_THAT(late.status().message(), HasSubstr("was given up, since another checkpoint was begun"));
  const std::vector<Index> of_next{*WriteRows(next, 1, 0, 4)};
  EXPECT_TRUE(writer->Commit({next, 1, of_next, {}, "", {}}).ok());
  const std::string last = *writer->Begin(3);
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_FALSE(fs::exists(last));
  EXPECT_THAT(StepsOfLine(tmp / "run"), ElementsAre(2));
}

// Begins a checkpoint whose ranks do not agree, and commits it.
Status FailToSave(RunWriter& writer, std::optional<int64_t> step) {
  const auto folder = writer.Begin(step);
  if (!folder.ok()) return folder.status();
  const std::vector<Index> parts{*WriteRows(*folder, 1, 0, 3)};
  return writer.Commit({*folder, 1, parts, {}, "", {}}).status();
}

TEST(RunWriter, MakesNoOrphansByASaveThatFails) {
  const TempDir tmp;
  const std::string path = tmp / "run";
  const auto first = *RunWriter::Open(path);
  for (const int64_t step : {10, 20, 30}) ASSERT_TRUE(SaveMatrix(*first, step).name.ok());
  EXPECT_EQ(FailToSave(*first, 30).code(), Code::kMismatch);
  EXPECT_THAT(StepsOfLine(path), ElementsAre(30, 20, 10));
  EXPECT_EQ(FailToSave(*first, 15).code(), Code::kMismatch);
  EXPECT_THAT(StepsOfLine(path), ElementsAre(30, 20, 10));
  ASSERT_TRUE(first->Close().ok());

  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto next = *RunWriter::Open(path);
    EXPECT_EQ(FailToSave(*next, {}).code(), Code::kMismatch);
    ASSERT_TRUE(next->Close().ok());
  }
  const auto last = *RunWriter::Open(path);
  EXPECT_EQ(FailToSave(*last, 15).code(), Code::kMismatch);
  const RunDirectory dir = *RunDirectory::OpenExisting(path);
  const Listing listing = *ListCheckpoints(dir);
  const std::string newest = Candidates(listing).front().name;
  EXPECT_THAT(*Strikes(dir, listing, newest, 1000), ElementsAre());
  // What a life goes on from is told by what it commits, not by what it has tried before.
  ASSERT_TRUE(SaveMatrix(*last, 31).name.ok());
  EXPECT_THAT(StepsOfLine(path), ElementsAre(31, 30, 20, 10));
}

// Another owner that has been told that this one is gone.
Result<std::unique_ptr<Life>> Overtake(const std::string& path) {
  LifeOptions options;
  options.dir = path;
  options.name = "main";
  options.self.claim = "00112233445566aa";
  options.self.node = "elsewhere";
  options.ask_slurm = [](const Identity&) { return HolderInSlurm::kGone; };
  options.say = [](const std::string&) {};
  options.beat_interval = std::chrono::milliseconds(10);
  return Life::Begin(options);
}

TEST(RunWriter, WritesNothingToADirectoryThatWasTakenOver) {
  const TempDir tmp;
  const std::string path = tmp / "run";
  const auto writer = *RunWriter::Open(path);
  ASSERT_TRUE(SaveMatrix(*writer, 10).name.ok());
  const std::string under_way = *writer->Begin(20);
  const std::vector<Index> parts{*WriteRows(under_way, 1, 0, 4)};
  auto other = Overtake(path);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(writer->Commit({under_way, 1, parts, {}, "", {}}).status().code(), Code::kFenced);
  EXPECT_FALSE(fs::exists(under_way));
  const auto refused = writer->Begin(30);
  EXPECT_EQ(refused.status().code(), Code::kBusy);
  EXPECT_THAT(refused.status().message(), HasSubstr("on elsewhere"));
  EXPECT_THAT(StepsOfLine(path), ElementsAre(10));
  ASSERT_TRUE((*other)->End().ok());
  ASSERT_TRUE(SaveMatrix(*writer, 30).name.ok());
  EXPECT_THAT(StepsOfLine(path), ElementsAre(30, 10));
}

TEST(RunWriter, BeginsARunAnewWhereTheDirectoryWasRemoved) {
  const TempDir tmp;
  auto writer = *RunWriter::Open(tmp / "run");
  ASSERT_TRUE(SaveMatrix(*writer, 2).name.ok());
  fs::remove_all(tmp / "run");
  ASSERT_TRUE(SaveMatrix(*writer, 1).name.ok());
  EXPECT_THAT(StepsOfLine(tmp / "run"), ElementsAre(1));
  fs::remove_all(tmp / "run");
  EXPECT_TRUE(writer->Close().ok());
}

TEST(RunWriter, RefusesWhatRanksDoNotAgreeOn) {
  const TempDir tmp;
  auto writer = *RunWriter::Open(tmp / "run");
  const auto commit = [&](const std::function<std::vector<Index>(const std::string&)>& write) {
    const std::string folder = *writer->Begin({});
    const std::vector<Index> parts = write(folder);
    const Status status = writer->Commit({folder, 2, parts, {}, "", {}}).status();
    EXPECT_FALSE(fs::exists(folder));
    EXPECT_EQ(status.code(), Code::kMismatch);
    return status.message();
  };
  EXPECT_THAT(commit([](const std::string& folder) {
                return std::vector<Index>{*WriteRows(folder, 1, 0, 2), *WriteRows(folder, 2, 3, 1)};
              }),
              HasSubstr("array 'm' of shape [4, 3]: elements [2:3, 0:3]"));
  EXPECT_THAT(commit([](const std::string& folder) {
                const double value = 1;
                const auto other = WriteBoxFile(
                    folder, 2, std::vector<ArrayBox>{{{"m", DType::kF64, false, {1}}, {{0}, {1}}}},
                    [&](size_t) { return reinterpret_cast<const std::byte*>(&value); });
                return std::vector<Index>{*WriteRows(folder, 1, 0, 4), *other};
              }),
              HasSubstr("array \"m\" is I32 [4, 3] on one rank and F64 [1] on another"));
  EXPECT_THAT(StepsOfLine(tmp / "run"), ElementsAre());
}

TEST(BoxFile, WritesNoFileOfEmptyBoxesAndGivesUpWhereBytesAreMissing) {
  const TempDir tmp;
  const auto none = [](size_t) -> const std::byte* { return nullptr; };
  const auto empty = WriteBoxFile(tmp.path(), 1, std::vector<ArrayBox>{{kMatrix, {{4, 0}, {0, 3}}}}, none);
  ASSERT_TRUE(empty.ok()) << empty.status().message();
  EXPECT_THAT(empty->saved.arrays, ElementsAre(kMatrix));
  EXPECT_TRUE(fs::is_empty(tmp.path()));
  const auto missing =
      WriteBoxFile(tmp.path(), 1, std::vector<ArrayBox>{{kMatrix, Box::Whole({4, 3})}}, none);
  EXPECT_EQ(missing.status().code(), Code::kInvalid);
  EXPECT_THAT(missing.status().message(), HasSubstr("the bytes of \"m\" were not to be had"));
  const auto outside = WriteBoxFile(tmp.path(), 1, std::vector<ArrayBox>{{kMatrix, {{3, 0}, {2, 3}}}}, none);
  EXPECT_EQ(outside.status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace cairn
