#include "runtime/staging/memory_slot.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/runtime/staging/ranks.h"

namespace cairn {
namespace {

// One image: a header of 4096 bytes and 10,000 of data.
ImagePlan SmallPlan() {
  ImagePlan plan;
  plan.images.push_back({.number = 1, .header = std::string(4096, 'h'), .size_bytes = 14096});
  plan.bytes = 14096;
  return plan;
}

TEST(MemorySlot, HoldsTheHeadersAndExactlyTheBytesOfItsFiles) {
  TempDir dir;
  auto tier = LocalTier::Open({.setting = dir.path(), .job = "7", .node = "n1"});
  ASSERT_TRUE(tier.ok()) << tier.status().message();
  EXPECT_EQ(MemorySlot::BytesFor(SmallPlan()), 4096u + 16384u);
  const auto slot = MemorySlot::Make(*tier, SmallPlan(), 0, TakeAll());
  ASSERT_TRUE(slot.ok()) << slot.status().message();
  (*slot)->image(0)[14095] = std::byte{'z'};
  const std::string image =
      ReadWholeFile(tier->path() + "/slot0.shard-00001-model-00001-of-00001.safetensors");
  EXPECT_EQ(image, std::string(4096, 'h') + std::string(9999, '\0') + "z");
  EXPECT_EQ(ReadWholeFile(tier->path() + "/slot0.sidecar"), std::string(128, '\0'));
}

TEST(MemorySlot, FillsTheImagesOfAnotherRankAndHasNoneOfItsOwn) {
  TempDir dir;
  const LocalTierOptions options = {.setting = dir.path(), .job = "7", .node = "n1"};
  const LocalTier first = *LocalTier::Open(options), other = *LocalTier::Open(options);
  ImagePlan shared;
  shared.shared = SmallPlan().images;
  EXPECT_EQ(MemorySlot::BytesFor(shared), 4096u);
  EXPECT_EQ(MemorySlot::Make(other, shared, 1, TakeAll(), first.path()).status().code(), Code::kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(other.path()));
  const auto slot = MemorySlot::Make(first, SmallPlan(), 1, TakeAll());
  const auto filler = MemorySlot::Make(other, shared, 1, TakeAll(), first.path());
  ASSERT_TRUE(filler.ok()) << filler.status().message();
  (*filler)->image(0)[14095] = std::byte{'z'};
  EXPECT_EQ((*slot)->image(0)[14095], std::byte{'z'});
  DrainControl control;
  const auto records = (*filler)->Drain(shared, {.directory = dir.path()}, control);
  ASSERT_TRUE(records.ok()) << records.status().message();
  EXPECT_TRUE(records->empty());
}

TEST(MemorySlot, LeavesNoFilesWhenMemoryRunsOut) {
  TempDir dir;
  auto tier = LocalTier::Open({.setting = dir.path(), .job = "7", .node = "n1"});
  ASSERT_TRUE(tier.ok()) << tier.status().message();
  int asked = 0;  // the sidecar may be taken, the image not
  const auto slot = MemorySlot::Make(*tier, SmallPlan(), 0, [&](uint64_t) {
    return ++asked == 1 ? OkStatus() : Status(Code::kOutOfMemory, "no more");
  });
  EXPECT_EQ(slot.status().code(), Code::kOutOfMemory);
  EXPECT_TRUE(std::filesystem::is_empty(tier->path()));
}

}  // namespace
}  // namespace cairn
