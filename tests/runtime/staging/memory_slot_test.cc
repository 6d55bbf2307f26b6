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
