#include "runtime/staging/slot.h"

#include <gtest/gtest.h>

#include "runtime/staging/memory_slot.h"
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
    auto slot = MemorySlot::Make(tier, SmallPlan(), i, TakeAll());
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

TEST(SlotPool, RefillsTheOnlyCompleteSlotWhereADrainHoldsTheOther) {
  SlotPool pool = MakePool(2);
  Slot* held = pool.Acquire(Save(1));
  pool.Complete(held);
  pool.BeginDrain(held);
  Slot* other = pool.Acquire(Save(2));
  pool.Complete(other);
  EXPECT_EQ(pool.Acquire(Save(3)), nullptr);  // its own drain may still come
  pool.EndDrain(other);
  EXPECT_EQ(pool.Acquire(Save(3)), other);
}

// As it may be where ranks fill it together: memory_slot.h, 4.
TEST(SlotPool, MarksACompleteSlotAgainThatWasVoidedLate) {
  SlotPool pool = MakePool(1);
  Slot* slot = pool.Acquire(Save(1));
  slot->sidecar().MarkStaged();
  slot->sidecar().Void();
  pool.Complete(slot);
  EXPECT_EQ(slot->sidecar().state(), SlotState::kStaged);
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

}  // namespace
}  // namespace cairn
