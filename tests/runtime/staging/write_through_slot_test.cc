#include "runtime/staging/write_through_slot.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "runtime/formats/names.h"
#include "runtime/staging/drain.h"
#include "runtime/staging/memory_slot.h"
#include "runtime/staging/snapshot.h"
#include "tests/runtime/staging/ranks.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

// One rank's state: several blocks, halos around the pieces, nothing aligned.
struct Program {
  Program() {
    memory.Fill();
    const auto plan = PlanSave(layout);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    images = *PlanImages(layout, *plan, 0);
    snapshot = *SnapshotPlan::Make(images, memory.strides());
    pieces = memory.pointers();
  }

  Random random{21};
  const Layout layout = MakeLayout(
      1,
      {{"u", DType::kF64, false, {900, 1001}},
       {"v", DType::kF32, false, {3}},
       {"w", DType::kU8, false, {1500, 1500}}},
      {{0, 0, 0, {{0, 0}, {900, 1001}}}, {1, 0, 0, {{0}, {3}}}, {2, 0, 0, {{0, 0}, {1500, 1500}}}});
  RankMemory memory{random, layout, 0};
  ImagePlan images;
  SnapshotPlan snapshot;
  std::vector<void*> pieces;
  DrainControl control;
};

class WriteThrough : public ::testing::Test {
 protected:
  std::unique_ptr<WriteThroughSlot> MakeSlot(int buffers = 3, bool direct = true,
                                             Writer writer = Writer::kAuto, uint64_t bytes_per_second = 0) {
    auto slot = WriteThroughSlot::Make({.run_directory = run_,
                                        .claim = "00112233445566aa",
                                        .rank = 3,
                                        .mode = 0640,
                                        .direct = direct,
                                        .writer = writer,
                                        .bytes_per_second = bytes_per_second},
                                       buffers, TakeAll());
    EXPECT_TRUE(slot.ok()) << slot.status().message();
    (*slot)->sidecar().Begin({.epoch = 7});
    return *std::move(slot);
  }
  std::string MakeAttempt(const std::string& name) {
    const std::string path = run_ + "/" + name;
    EXPECT_TRUE(fs::create_directory(path));
    return path;
  }
  std::vector<std::string> Names(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  TempDir dir_;
  const std::string run_ = dir_.path();
  Program program_;
};

TEST_F(WriteThrough, MakesTheSameFilesAsADrainOfMemory) {
  const std::string expected = MakeAttempt("expected");
  const auto records = SaveRank(*LocalTier::Open({.setting = "none"}), program_.images,
                                program_.memory.strides(), program_.pieces, {.directory = expected});
  ASSERT_TRUE(records.ok()) << records.status().message();
  ASSERT_GT(program_.images.bytes, uint64_t{9} << 20);
  for (const int buffers : {1, 4}) {
    for (const bool direct : {true, false}) {
      const std::string name = "found" + std::to_string(buffers) + (direct ? "d" : "");
      const std::string found = MakeAttempt(name);
      const auto slot = MakeSlot(buffers, direct);
      ASSERT_TRUE(
          slot->Fill(program_.images, program_.snapshot, program_.pieces.data(), program_.control).ok());
      EXPECT_EQ(slot->sidecar().state(), SlotState::kStaged);
      EXPECT_TRUE(fs::is_empty(found));  // nothing counts before the drain
      const auto ours = slot->Drain(program_.images, {.directory = found, .mode = 0640}, program_.control);
      ASSERT_TRUE(ours.ok()) << ours.status().message();
      EXPECT_EQ(*ours, *records);
      ASSERT_EQ(Names(found), Names(expected));
      for (const std::string& file : Names(found)) {
        ASSERT_EQ(ReadWholeFile(found + "/" + file), ReadWholeFile(expected + "/" + file)) << file;
        struct stat st;
        ASSERT_EQ(stat((found + "/" + file).c_str(), &st), 0);
        EXPECT_EQ(st.st_mode & 07777, 0640u) << file;
      }
    }
  }
  program_.memory.Check();
}

// Its halves lie side by side, as those of ranks that write together are joined.
TEST_F(WriteThrough, MakesTheSameFilesForARankThatWritesBesideOthers) {
  const Layout layout = MakeLayout(3, {{"u", DType::kF64, false, {400, 6000}}},
                                   {{0, 0, 0, {{0, 0}, {100, 6000}}},
                                    {0, 1, 0, {{100, 0}, {100, 6000}}},
                                    {0, 2, 0, {{200, 0}, {200, 3000}}},
                                    {0, 2, 1, {{200, 3000}, {200, 3000}}}});
  const auto writers = Writers::Make(layout, {0, 0, 1});
  ASSERT_TRUE(writers.ok()) << writers.status().message();
  const ImagePlan images = *PlanImages(*writers, *PlanSave(writers->layout()), 2);
  RankMemory memory(program_.random, layout, 2);
  memory.Fill();
  const auto snapshot = SnapshotPlan::Make(images, memory.strides());
  const std::string expected = MakeAttempt("expected"), found = MakeAttempt("found");
  const auto records = SaveRank(*LocalTier::Open({.setting = "none"}), images, memory.strides(),
                                memory.pointers(), {.directory = expected});
  ASSERT_TRUE(records.ok()) << records.status().message();
  const auto slot = MakeSlot();
  ASSERT_TRUE(slot->Fill(images, *snapshot, memory.pointers().data(), program_.control).ok());
  const auto ours = slot->Drain(images, {.directory = found}, program_.control);
  ASSERT_TRUE(ours.ok()) << ours.status().message();
  EXPECT_EQ(*ours, *records);
  for (const std::string& file : Names(expected))
    EXPECT_TRUE(ReadWholeFile(found + "/" + file) == ReadWholeFile(expected + "/" + file)) << file;
}

TEST_F(WriteThrough, LeavesNothingBehind) {
  {
    const auto slot = MakeSlot();
    EXPECT_TRUE(fs::is_empty(run_));  // nothing is touched before the first save
    EXPECT_GT(*slot->MeasureRate(), 0);
    EXPECT_TRUE(fs::is_empty(run_));
    ASSERT_TRUE(
        slot->Fill(program_.images, program_.snapshot, program_.pieces.data(), program_.control).ok());
    const auto names = Names(run_);
    ASSERT_EQ(names.size(), 1u);
    const auto folder = names::ParseStagingFolder(names[0]);
    ASSERT_TRUE(folder) << names[0];
    EXPECT_EQ(folder->claim, "00112233445566aa");
    EXPECT_EQ(folder->rank, 3u);
    struct stat st;
    ASSERT_EQ(stat((run_ + "/" + names[0]).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0700u);
  }
  EXPECT_TRUE(fs::is_empty(run_));
}

TEST_F(WriteThrough, TakesTheNextSaveAfterOneThatWasDropped) {
  const auto slot = MakeSlot();
  ASSERT_TRUE(slot->Fill(program_.images, program_.snapshot, program_.pieces.data(), program_.control).ok());
  program_.memory.Spoil();
  const std::string attempt = MakeAttempt("attempt");
  for (int save = 0; save < 3; ++save) {
    ASSERT_TRUE(
        slot->Fill(program_.images, program_.snapshot, program_.pieces.data(), program_.control).ok());
  }
  ASSERT_TRUE(slot->Drain(program_.images, {.directory = attempt}, program_.control).ok());
  const std::string shard = ReadWholeFile(attempt + "/" + names::Shard(program_.images.images[0].number));
  const size_t header = program_.images.images[0].header.size();
  EXPECT_EQ(shard.substr(header), std::string(shard.size() - header, '\xEE'));
}

TEST_F(WriteThrough, OfAStaleWriterComesToNothing) {
  const auto slot = MakeSlot();
  ASSERT_TRUE(slot->Fill(program_.images, program_.snapshot, program_.pieces.data(), program_.control).ok());
  const std::string attempt = MakeAttempt("attempt");
  fs::rename(attempt, run_ + "/dead-attempt");  // a newer life has taken over
  EXPECT_EQ(slot->Drain(program_.images, {.directory = attempt}, program_.control).status().code(),
            Code::kNotFound);
  EXPECT_TRUE(fs::is_empty(run_ + "/dead-attempt"));
}

TEST_F(WriteThrough, FailsWhereItsFolderWasTakenAway) {
  const auto slot = MakeSlot();
  ASSERT_TRUE(slot->Fill(program_.images, program_.snapshot, program_.pieces.data(), program_.control).ok());
  const std::string attempt = MakeAttempt("attempt");
  for (const std::string& name : Names(run_)) {
    if (names::ParseStagingFolder(name)) fs::remove_all(run_ + "/" + name);
  }
  EXPECT_EQ(slot->Drain(program_.images, {.directory = attempt}, program_.control).status().code(),
            Code::kNotFound);
  EXPECT_TRUE(fs::is_empty(attempt));  // the sums are gone, too
}

TEST_F(WriteThrough, StopsAndRemovesItsFilesWhenItIsCancelled) {
  const auto slot = MakeSlot();
  program_.control.Cancel();
  EXPECT_EQ(slot->Fill(program_.images, program_.snapshot, program_.pieces.data(), program_.control).code(),
            Code::kCancelled);
  EXPECT_EQ(slot->sidecar().state(), SlotState::kFilling);
  EXPECT_TRUE(fs::is_empty(run_));
}

TEST_F(WriteThrough, WritesWithTheWriterAskedFor) {
  std::vector<Writer> writers = {Writer::kPwrite};
  if (CheckIoUring().ok()) writers.push_back(Writer::kIoUring);
  for (const Writer writer : writers) {
    const auto slot = MakeSlot(3, true, writer);
    ASSERT_TRUE(
        slot->Fill(program_.images, program_.snapshot, program_.pieces.data(), program_.control).ok());
    EXPECT_EQ(program_.control.writer(), writer == Writer::kPwrite ? "pwrite" : "io_uring");
  }
}

constexpr uint64_t kOneBytePerSecond = 1;  // after the first block it is nobody's turn any more

TEST_F(WriteThrough, WaitsForItsTurnUntilItIsHurried) {
  const auto slot = MakeSlot(3, true, Writer::kAuto, kOneBytePerSecond);
  std::thread hurrier([&] {
    while (program_.control.bytes_written() == 0) std::this_thread::yield();
    program_.control.Hurry();
  });
  EXPECT_TRUE(slot->Fill(program_.images, program_.snapshot, program_.pieces.data(), program_.control).ok());
  hurrier.join();
  EXPECT_EQ(program_.control.bytes_written(), program_.images.bytes);
}

TEST_F(WriteThrough, IsCancelledWhileItWaitsForItsTurn) {
  const auto slot = MakeSlot(3, true, Writer::kAuto, kOneBytePerSecond);
  std::thread canceller([&] {
    while (program_.control.bytes_written() == 0) std::this_thread::yield();
    program_.control.Cancel();
  });
  EXPECT_EQ(slot->Fill(program_.images, program_.snapshot, program_.pieces.data(), program_.control).code(),
            Code::kCancelled);
  canceller.join();
  EXPECT_EQ(program_.control.bytes_written(), kBlockBytes);
}

TEST_F(WriteThrough, ExpectsNoMoreThanTheLimit) {
  EXPECT_EQ(*MakeSlot(1, true, Writer::kAuto, kOneBytePerSecond)->MeasureRate(), 1);
}

TEST_F(WriteThrough, SaysWhatItCouldNotWriteWhere) {
  const auto slot = MakeSlot();
  fs::remove_all(run_);
  const Status status =
      slot->Fill(program_.images, program_.snapshot, program_.pieces.data(), program_.control);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("after 0 of " + std::to_string(program_.images.bytes) + " bytes"),
            std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find(run_ + "/.staging-00112233445566aa-3"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace cairn
