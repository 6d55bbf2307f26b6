#include "runtime/session/saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/runtime/session/one_rank.h"

namespace cairn {
namespace {

constexpr size_t kThreeBlocks = 11 << 20;
constexpr uint64_t kOneBytePerSecond = 1;  // after the first block it is nobody's turn any more

TEST(Saver, TellsHowLongTheDrainWouldHaveTakenInAHurry) {
  int64_t held_back_ns = 0;
  for (int tries = 0; held_back_ns == 0 && tries < 100; ++tries) {  // until the hurry comes while it waits
    OneRank rank(kThreeBlocks);
    const auto saver = rank.MakeSaver(kOneBytePerSecond);
    Stage(*saver, 1);
    Result<MemberRecord> record = Status(Code::kInternal, "");
    Saver::Save* const save = saver->EnterDrain(1);
    ASSERT_NE(save, nullptr);
    std::thread worker([&] { record = saver->Drain(*save, rank.dir.path()); });
    while (saver->seen()->written == 0) std::this_thread::yield();
    EXPECT_GT(saver->seen()->bytes_per_second, 0);
    saver->Hurry();
    worker.join();
    saver->DrainEnded(*save);
    ASSERT_TRUE(record.ok()) << record.status().message();
    EXPECT_EQ(record->hurried_stall_ns, record->stall_ns);
    EXPECT_GT(record->hurried_drain_ns, 0);
    held_back_ns = record->drain_ns - record->hurried_drain_ns;
    EXPECT_GE(held_back_ns, 0);
    saver->Settle(1, Saver::Worth::kDurable);
  }
  EXPECT_GT(held_back_ns, 0);
}

TEST(Saver, HoldsNothingBackWithoutALimit) {
  OneRank rank(kThreeBlocks);
  const auto saver = rank.MakeSaver(0);
  Stage(*saver, 1);
  const auto record = Drain(*saver, 1, rank.dir.path());
  ASSERT_TRUE(record.ok()) << record.status().message();
  EXPECT_EQ(record->hurried_drain_ns, record->drain_ns);
  saver->Settle(1, Saver::Worth::kDurable);
}

TEST(Saver, StaysInAHurryOverTheNextSaves) {
  OneRank rank(kThreeBlocks);
  const auto saver = rank.MakeSaver(kOneBytePerSecond);
  saver->Hurry();
  for (const uint64_t save : {1, 2}) {
    Stage(*saver, save);
    const std::string folder = rank.dir / std::to_string(save);
    ASSERT_TRUE(MakeDirectories(folder).ok());
    const auto record = Drain(*saver, save, folder);
    ASSERT_TRUE(record.ok()) << record.status().message();
    EXPECT_EQ(record->hurried_drain_ns, record->drain_ns);
    saver->Settle(save, Saver::Worth::kDurable);
  }
}

// Its files are planned when it is made. A save is told to the leader by their checksums.
TEST(Saver, TellsTheLeaderNothingOfTheLayout) {
  std::byte memory[8] = {};
  size_t few_arrays_bytes = 0;
  for (const int arrays : {1, 2000}) {
    OneRank rank(8);
    for (int a = 0; a < arrays; ++a) {
      cairn_piece piece{.offset = {0}, .extent = {8}, .stride = {}, .data = memory};
      cairn_array array{};
      array.struct_size = sizeof array;
      array.dtype = CAIRN_U8;
      array.ndim = 1;
      array.shape[0] = 8;
      array.piece_count = 1;
      array.pieces = &piece;
      ASSERT_TRUE(rank.items.AddArray("array" + std::to_string(a), array).ok());
    }
    ShareMerger merger;
    ASSERT_TRUE(merger.Add(EncodeShare(rank.items)).ok());
    rank.state = *std::move(merger).Finish();
    const auto saver = rank.MakeSaver(0);
    for (const uint64_t save : {1, 2}) {
      const std::string folder = rank.dir / std::to_string(save);
      ASSERT_TRUE(MakeDirectories(folder).ok());
      Stage(*saver, save);
      const auto record = Drain(*saver, save, folder);
      ASSERT_TRUE(record.ok()) << record.status().message();
      saver->Settle(save, Saver::Worth::kDurable);
      const size_t bytes = EncodeSessionMessage(*record).size();
      if (few_arrays_bytes == 0) few_arrays_bytes = bytes;
      EXPECT_LT(bytes, few_arrays_bytes + 30);  // numbers may have more digits
    }
  }
}

TEST(Saver, CopiesNothingWhileAnItemHasNoMemory) {
  OneRank rank(kThreeBlocks);
  const auto saver = rank.MakeSaver(0);
  EXPECT_TRUE(saver->HaveMemory().ok());
  ASSERT_TRUE(rank.items.Update(0, 0, nullptr).ok());
  EXPECT_THAT(saver->HaveMemory().message(), testing::HasSubstr("\"u\""));
  ASSERT_TRUE(saver->Acquire(1, 10).ok());
  EXPECT_EQ(saver->Copy({7, 10, false}, "").code(), Code::kUnavailable);
  saver->Settle(1, Saver::Worth::kNone);
  ASSERT_TRUE(rank.items.Update(0, 0, rank.memory.data()).ok());
  Stage(*saver, 2);
  EXPECT_TRUE(Drain(*saver, 2, rank.dir.path()).ok());
  saver->Settle(2, Saver::Worth::kDurable);
}

TEST(Saver, SavesOnWhileTheDrainOfASaveThatHasEndedDoesNotReturn) {
  OneRank rank(kThreeBlocks);
  const auto saver = rank.MakeSaver(0);
  Stage(*saver, 1);
  Saver::Save* const hung = saver->EnterDrain(1);
  ASSERT_NE(hung, nullptr);
  EXPECT_TRUE(saver->busy());
  saver->Settle(1, Saver::Worth::kLocal);
  EXPECT_FALSE(saver->busy());
  EXPECT_EQ(saver->stuck(std::chrono::nanoseconds(0)), 10);
  EXPECT_EQ(saver->stuck(std::chrono::hours(1)), std::nullopt);
  for (const uint64_t save : {2, 3}) {  // in the one slot that is left
    Stage(*saver, save);
    saver->Settle(save, Saver::Worth::kLocal);
    EXPECT_EQ(saver->EnterDrain(save), nullptr);
  }
  EXPECT_EQ(saver->Drain(*hung, rank.dir.path()).status().code(), Code::kCancelled);
  saver->DrainEnded(*hung);
  EXPECT_EQ(saver->stuck(std::chrono::nanoseconds(0)), std::nullopt);
  Stage(*saver, 4);
  EXPECT_TRUE(Drain(*saver, 4, rank.dir.path()).ok());
}

TEST(Saver, MakesNoSnapshotWhileDrainsHoldAllSlots) {
  OneRank rank(kThreeBlocks);
  const auto saver = rank.MakeSaver(0);
  std::vector<Saver::Save*> hung;
  for (const uint64_t save : {1, 2}) {
    Stage(*saver, save);
    hung.push_back(saver->EnterDrain(save));
    ASSERT_NE(hung.back(), nullptr);
    saver->Settle(save, Saver::Worth::kLocal);
  }
  EXPECT_TRUE(saver->busy());
  EXPECT_EQ(saver->Acquire(3, 10).code(), Code::kBusy);
  saver->DrainEnded(*hung.front());
  EXPECT_FALSE(saver->busy());
  EXPECT_TRUE(saver->Acquire(3, 10).ok());
}

}  // namespace
}  // namespace cairn
