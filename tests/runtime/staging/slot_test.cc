#include "runtime/staging/slot.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/runtime/staging/ranks.h"

namespace cairn {
namespace {

// One image: a header of 4096 bytes and 10,000 of data.
ImagePlan SmallPlan() {
  ImagePlan plan;
  Image image;
  image.number = 1;
  image.header = std::string(4096, 'h');
  image.size_bytes = 14096;
  plan.bytes = image.size_bytes;
  plan.images.push_back(image);
  return plan;
}

LocalTier Anonymous() {
  auto tier = LocalTier::Open({.setting = "none"});
  EXPECT_TRUE(tier.ok());
  return *std::move(tier);
}

SlotPool MakePool(int slots) {
  const LocalTier tier = Anonymous();
  std::vector<std::unique_ptr<Slot>> made;
  for (int i = 0; i < slots; ++i) {
    auto slot = Slot::Make(tier, SmallPlan(), i, TakeAll());
    EXPECT_TRUE(slot.ok()) << slot.status().message();
    made.push_back(*std::move(slot));
  }
  return SlotPool(std::move(made));
}

SnapshotId Save(uint64_t id) { return {.epoch = 1, .save_id = id, .boundary = id}; }

TEST(SlotPool, NeverRefillsTheOnlyCompleteSlot) {
  SlotPool pool = MakePool(2);
  Slot* first = pool.Acquire(Save(1));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->sidecar().state(), SlotState::kFilling);
  first->sidecar().MarkStaged();
  pool.Complete(first);
  pool.BeginDrain(first);
  pool.EndDrain(first);
  for (uint64_t id = 2; id < 5; ++id) {  // saves that are dropped
    Slot* next = pool.Acquire(Save(id));
    ASSERT_NE(next, nullptr);
    EXPECT_NE(next, first);
    EXPECT_EQ(pool.Acquire(Save(id + 100)), nullptr);  // rather no save than the only snapshot gone
    pool.Release(next);
  }
  EXPECT_EQ(first->sidecar().state(), SlotState::kStaged);
}

TEST(SlotPool, RefillsTheOlderOfTwoCompleteSlots) {
  SlotPool pool = MakePool(2);
  Slot* first = pool.Acquire(Save(1));
  pool.Complete(first);
  Slot* second = pool.Acquire(Save(2));
  ASSERT_NE(second, nullptr);
  pool.Complete(second);
  EXPECT_EQ(pool.Acquire(Save(3)), first);
}

TEST(SlotPool, GivesOutNoSlotThatIsFilledOrDrained) {
  SlotPool pool = MakePool(2);
  Slot* first = pool.Acquire(Save(1));
  pool.BeginDrain(first);
  Slot* second = pool.Acquire(Save(2));
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second, first);
  EXPECT_EQ(pool.Acquire(Save(3)), nullptr);
  pool.Complete(first);
  pool.Complete(second);
  EXPECT_EQ(pool.Acquire(Save(3)), nullptr);  // the older one is still being drained
  pool.EndDrain(first);
  EXPECT_EQ(pool.Acquire(Save(3)), first);
}

TEST(SlotPool, RefillsASingleSlotOnlyAfterItsDrain) {
  SlotPool pool = MakePool(1);
  Slot* only = pool.Acquire(Save(1));
  pool.Complete(only);
  EXPECT_EQ(pool.Acquire(Save(2)), nullptr);
  pool.BeginDrain(only);
  EXPECT_EQ(pool.Acquire(Save(2)), nullptr);
  pool.EndDrain(only);
  EXPECT_EQ(pool.Acquire(Save(2)), only);
  pool.Complete(only);
  EXPECT_EQ(pool.Acquire(Save(3)), nullptr);  // the new snapshot was not drained
}

TEST(SlotPool, VoidsTheSidecarOfADroppedSave) {
  SlotPool pool = MakePool(1);
  Slot* slot = pool.Acquire(Save(1));
  slot->sidecar().MarkStaged();
  pool.Release(slot);
  EXPECT_EQ(slot->sidecar().state(), SlotState::kEmpty);
  EXPECT_EQ(pool.Acquire(Save(2)), slot);
}

MemoryRoom RoomOf(uint64_t bytes) { return {bytes, "memory cgroup /job_7 (1.0 GB, 0.9 GB used)"}; }

TEST(SlotPool, HasAsManySlotsAsEachRanksShareOfTheMemoryAllows) {
  const LocalTier tier = Anonymous();
  const uint64_t slot_bytes = Slot::BytesFor(SmallPlan());
  EXPECT_EQ(slot_bytes, 4096u + 16384u);
  const auto slots = [&](uint64_t room, int ranks) {
    const auto pool = SlotPool::Make(tier, SmallPlan(), ranks, [room] { return RoomOf(room); });
    return pool.ok() ? pool->size() : 0;
  };
  const uint64_t head = 64 << 20;
  EXPECT_EQ(slots(head + 2 * slot_bytes, 1), 2);
  EXPECT_EQ(slots(head + 2 * slot_bytes - 1, 1), 1);
  EXPECT_EQ(slots(head + slot_bytes - 1, 1), 0);
  EXPECT_EQ(slots(head + 8 * slot_bytes, 4), 2);
  EXPECT_EQ(slots(head + 8 * slot_bytes - 1, 4), 1);
  EXPECT_EQ(slots(head + 4 * slot_bytes - 1, 4), 0);
}

TEST(SlotPool, SaysWhatIsMissingAndWhatToDoWhenNothingFits) {
  const auto pool = SlotPool::Make(Anonymous(), SmallPlan(), 4, [] { return RoomOf(70 << 20); });
  ASSERT_TRUE(pool.ok());
  const auto none = SlotPool::Make(Anonymous(), SmallPlan(), 4, [] { return RoomOf(10 << 20); });
  EXPECT_EQ(none.status().code(), Code::kOutOfMemory);
  EXPECT_EQ(none.status().message(),
            "no room to stage 20.5 kB for each of 4 ranks on this node: 0 B are left in all, bounded by "
            "memory cgroup /job_7 "
            "(1.0 GB, 0.9 GB used). Ask for more memory (--mem) or use fewer ranks per node; until then "
            "nothing is saved");
}

TEST(SlotPool, LeavesNoFilesOfASlotThatMemoryRanOutFor) {
  TempDir dir;
  auto tier = LocalTier::Open({.setting = dir.path(), .job = "7", .node = "n1"});
  ASSERT_TRUE(tier.ok()) << tier.status().message();
  int asked =
      0;  // once for the number of slots, then before each mapping: the second slot's image is refused
  const auto pool =
      SlotPool::Make(*tier, SmallPlan(), 1, [&] { return RoomOf(++asked <= 4 ? uint64_t{1} << 30 : 0); });
  ASSERT_TRUE(pool.ok()) << pool.status().message();
  EXPECT_EQ(pool->size(), 1);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(tier->path()))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"slot0.shard-00001-model-00001-of-00001.safetensors",
                                             "slot0.sidecar"}));
}

TEST(Slot, HoldsTheHeadersAndExactlyTheBytesOfItsFiles) {
  TempDir dir;
  auto tier = LocalTier::Open({.setting = dir.path(), .job = "7", .node = "n1"});
  ASSERT_TRUE(tier.ok()) << tier.status().message();
  const auto slot = Slot::Make(*tier, SmallPlan(), 0, TakeAll());
  ASSERT_TRUE(slot.ok()) << slot.status().message();
  (*slot)->image(0)[14095] = std::byte{'z'};
  const std::string image =
      ReadWholeFile(tier->path() + "/slot0.shard-00001-model-00001-of-00001.safetensors");
  EXPECT_EQ(image, std::string(4096, 'h') + std::string(9999, '\0') + "z");
  EXPECT_EQ(ReadWholeFile(tier->path() + "/slot0.sidecar"), std::string(128, '\0'));
}

}  // namespace
}  // namespace cairn
