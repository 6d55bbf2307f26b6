#include "runtime/staging/sidecar.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <array>
#include <cstring>

namespace cairn {
namespace {

struct alignas(8) Bytes : std::array<std::byte, kSidecarBytes> {};

SnapshotId SomeId() {
  SnapshotId id;
  id.epoch = 7;
  id.save_id = 0x1122334455667788;
  id.boundary = 1200;
  for (uint8_t i = 0; i < 16; ++i) id.layout.bytes[i] = static_cast<uint8_t>(0xA0 + i);
  id.rank = 3;
  id.world_size = 8;
  return id;
}

TEST(Sidecar, LiesOnDiskAsThePageSays) {
  Bytes bytes{};
  Sidecar sidecar(bytes.data());
  sidecar.Begin(SomeId());
  sidecar.MarkStaged();
  const unsigned char expected[64] = {'C',  'A',  'I',  'R',  'N',  'S',  'L',  'T',   // magic
                                      1,    0,    0,    0,    128,  0,    0,    0,     // version, length
                                      7,    0,    0,    0,    0,    0,    0,    0,     // epoch
                                      0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  // save id
                                      0xB0, 0x04, 0,    0,    0,    0,    0,    0,     // boundary
                                      0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7,  // layout
                                      0xA8, 0xA9, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF,  //
                                      3,    0,    0,    0,    8,    0,    0,    0};    // rank, world size
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof(expected)), 0);
  const uint64_t check = XXH3_64bits(expected, sizeof(expected));
  EXPECT_EQ(std::memcmp(bytes.data() + 64, &check, 8), 0);
  const unsigned char state[4] = {2, 0, 0, 0};
  EXPECT_EQ(std::memcmp(bytes.data() + 96, state, 4), 0);
  for (size_t i = 100; i < 128; ++i) EXPECT_EQ(bytes[i], std::byte{0}) << i;

  Hash128 content;
  content.bytes.fill(0x5C);
  sidecar.MarkHashed(content);
  EXPECT_EQ(std::memcmp(bytes.data() + 72, content.bytes.data(), 16), 0);
  const uint64_t content_check = XXH3_64bits(bytes.data(), 88);
  EXPECT_EQ(std::memcmp(bytes.data() + 88, &content_check, 8), 0);
  EXPECT_EQ(bytes[96], std::byte{3});
}

TEST(Sidecar, TellsWhatWasStagedOnlyFromStagedOn) {
  Bytes bytes{};
  Sidecar sidecar(bytes.data());
  EXPECT_EQ(DecodeSidecar(bytes.data(), bytes.size())->state, SlotState::kEmpty);
  sidecar.Begin(SomeId());
  EXPECT_EQ(DecodeSidecar(bytes.data(), bytes.size())->state, SlotState::kFilling);
  EXPECT_EQ(DecodeSidecar(bytes.data(), bytes.size())->id, SnapshotId());
  sidecar.MarkStaged();
  EXPECT_EQ(DecodeSidecar(bytes.data(), bytes.size())->id, SomeId());
  Hash128 content;
  content.bytes.fill(9);
  sidecar.MarkHashed(content);
  const auto decoded = DecodeSidecar(bytes.data(), bytes.size());
  ASSERT_TRUE(decoded.ok()) << decoded.status().message();
  EXPECT_EQ(decoded->state, SlotState::kHashed);
  EXPECT_EQ(decoded->id, SomeId());
  EXPECT_EQ(decoded->content, content);
  sidecar.Void();
  EXPECT_EQ(DecodeSidecar(bytes.data(), bytes.size())->state, SlotState::kEmpty);
}

TEST(Sidecar, IsVoidFromTheFirstStoreOfBegin) {
  // A process that died after the first store of Begin: the old fields are whole, the state says FILLING.
  Bytes bytes{};
  Sidecar sidecar(bytes.data());
  sidecar.Begin(SomeId());
  sidecar.MarkStaged();
  bytes[96] = std::byte{1};
  EXPECT_EQ(DecodeSidecar(bytes.data(), bytes.size())->state, SlotState::kFilling);
}

TEST(Sidecar, RefusesEveryFlippedBitOfAHashedSlot) {
  Bytes bytes{};
  Sidecar sidecar(bytes.data());
  sidecar.Begin(SomeId());
  sidecar.MarkStaged();
  sidecar.MarkHashed(Hash128());
  for (size_t bit = 0; bit < 96 * 8; ++bit) {
    Bytes damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_EQ(DecodeSidecar(damaged.data(), damaged.size()).status().code(), Code::kDamage) << "bit " << bit;
  }
  EXPECT_EQ(DecodeSidecar(bytes.data(), bytes.size() - 1).status().code(), Code::kDamage);
}

TEST(Sidecar, IsVoidedByWhoeverBeginsToOverwriteAnotherSave) {
  alignas(8) std::byte first[kSidecarBytes] = {}, other[kSidecarBytes] = {};
  Sidecar of_first(first), of_other(other);
  of_first.Begin({.epoch = 1, .save_id = 7, .boundary = 70, .rank = 0});
  of_first.MarkStaged();
  of_other.Begin({.epoch = 1, .save_id = 7, .boundary = 70, .rank = 3});
  of_first.VoidUnlessOf(of_other);
  EXPECT_EQ(of_first.state(), SlotState::kStaged);
  of_other.Begin({.epoch = 1, .save_id = 8, .boundary = 80, .rank = 3});
  of_first.VoidUnlessOf(of_other);
  EXPECT_EQ(of_first.state(), SlotState::kEmpty);
  of_first.Begin({.epoch = 1, .save_id = 9, .boundary = 90, .rank = 0});
  of_first.VoidUnlessOf(of_other);
  EXPECT_EQ(of_first.state(), SlotState::kFilling);
}

}  // namespace
}  // namespace cairn
