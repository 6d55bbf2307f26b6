#include "runtime/session/partner.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <optional>

#include "runtime/staging/leftovers.h"
#include "runtime/staging/slot_record.h"

namespace cairn {
namespace {

TEST(PartnersOf, PairsEachNodeWithTheNextAndSpreadsItsRanks) {
  EXPECT_EQ(PartnersOf({"a", "b"}), (std::vector<int>{1, 0}));
  EXPECT_EQ(PartnersOf({"a", "a", "b", "b"}), (std::vector<int>{2, 3, 0, 1}));
  EXPECT_EQ(PartnersOf({"a", "b", "a", "b"}), (std::vector<int>{1, 0, 3, 2}));  // cyclic distribution
  EXPECT_EQ(PartnersOf({"a", "a", "a", "b"}), (std::vector<int>{3, 3, 3, 0}));
  EXPECT_EQ(PartnersOf({"a", "b", "b", "c"}), (std::vector<int>{1, 3, 3, 0}));
  EXPECT_EQ(PartnersOf({"a", "a"}), (std::vector<int>{-1, -1}));
  EXPECT_EQ(PartnersOf({"a"}), (std::vector<int>{-1}));
}

class PartnerSlotsTest : public ::testing::Test {
 protected:
  PartnerSlotsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cairn-test-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    layout_.world_size = 2;
    layout_.arrays = {{"u", DType::kU8, false, {200}}};
    layout_.pieces = {{0, 0, 0, {{0}, {100}}}, {0, 1, 0, {{100}, {100}}}};
    plan_.emplace(*PlanSave(layout_));
    images_ = *PlanImages(layout_, *plan_, 1);
  }
  ~PartnerSlotsTest() override { std::filesystem::remove_all(folder_); }

  LocalTierOptions options() const { return {.setting = folder_, .job = "7", .node = "b"}; }

  // What rank 1 of another node sends, up to but without message `count`.
  void Send(PartnerSlots& slots, int count) {
    std::array<std::byte, kSidecarBytes> sidecar{};
    Sidecar(sidecar.data()).Begin({.epoch = 2, .save_id = 5, .boundary = 40, .rank = 1, .world_size = 2});
    Sidecar(sidecar.data()).MarkStaged();
    const RecordShape shape{"0123456789abcdef", {}};
    std::vector<std::byte> record(SlotRecord::BytesFor(shape));
    SlotRecord(record.data(), shape).Stamp({.label = 400, .count = 40});
    std::vector<std::byte> image(images_.images[0].size_bytes, std::byte{'x'});
    std::memcpy(image.data(), images_.images[0].header.data(), images_.images[0].header.size());

    if (count > 0) {
      ASSERT_TRUE(Take(slots, {kPartnerBegin, {5}}, sidecar).ok());
    }
    if (count > 1) {
      const BulkSubject subject{kPartnerImage, {5, 0, 0}};
      const auto room = slots.Place(1, subject, static_cast<uint32_t>(image.size()));
      ASSERT_TRUE(room.ok()) << room.status().message();
      std::memcpy(room->data(), image.data(), image.size());
      ASSERT_TRUE(slots.Take(1, subject, *room).ok());
    }
    if (count > 2) {
      ASSERT_TRUE(Take(slots, {kPartnerRecord, {5}}, record).ok());
    }
    if (count > 3) {
      ASSERT_TRUE(Take(slots, {kPartnerEnd, {5}}, {}).ok());
    }
  }
  static Status Take(PartnerSlots& slots, const BulkSubject& subject, std::span<const std::byte> payload) {
    return slots.Take(1, subject, payload);
  }
  PartnerSlots Make(const LocalTier& tier) {
    auto slots = PartnerSlots::Make(
        tier, layout_, *plan_, {1}, [](uint64_t) { return OkStatus(); },
        [this](uint32_t ward, uint64_t save_id) { held_.emplace_back(ward, save_id); });
    EXPECT_TRUE(slots.ok()) << slots.status().message();
    return *std::move(slots);
  }

  std::string folder_;
  Layout layout_;
  std::optional<SavePlan> plan_;
  ImagePlan images_;
  std::vector<std::pair<uint32_t, uint64_t>> held_;
};

TEST_F(PartnerSlotsTest, HoldACopyThatALaterLifeFindsOnceItsEndHasCome) {
  for (int count = 0; count <= 4; ++count) {
    held_.clear();
    {
      auto tier = LocalTier::Open(options());
      ASSERT_TRUE(tier.ok());
      tier->Keep();  // as if killed
      PartnerSlots slots = Make(*tier);
      Send(slots, count);
    }
    const auto left = Leftovers::Open(options());
    const std::vector<LeftSlot> found = left->List();
    ASSERT_EQ(found.size(), count == 4 ? 1u : 0u) << count << " messages";
    EXPECT_EQ(held_.size(), found.size());
    if (found.empty()) continue;
    EXPECT_EQ(found[0].slot, "partner1");
    EXPECT_EQ(found[0].id.rank, 1u);
    EXPECT_EQ(found[0].run_id, "0123456789abcdef");
    const auto adopted = left->Adopt(found[0].folder, found[0].slot, images_);
    ASSERT_TRUE(adopted.ok()) << adopted.status().message();
    EXPECT_EQ(*(adopted->slot->image(0) + images_.images[0].size_bytes - 1), std::byte{'x'});
  }
}

TEST_F(PartnerSlotsTest, AreVoidWhileTheNextCopyComes) {
  {
    auto tier = LocalTier::Open(options());
    tier->Keep();
    PartnerSlots slots = Make(*tier);
    Send(slots, 4);
    Send(slots, 2);
  }
  EXPECT_TRUE(Leftovers::Open(options())->List().empty());
}

TEST_F(PartnerSlotsTest, RefuseWhatNoWardMaySendNow) {
  const auto tier = LocalTier::Open(options());
  PartnerSlots slots = Make(*tier);
  const uint64_t bytes = images_.images[0].size_bytes;
  EXPECT_EQ(slots.Place(1, {kPartnerImage, {5, 0, 0}}, 1).status().code(),
            Code::kInvalid);  // nothing was begun
  Send(slots, 1);
  EXPECT_TRUE(slots.Place(1, {kPartnerImage, {5, 0, bytes - 1}}, 1).ok());
  EXPECT_EQ(slots.Place(1, {kPartnerImage, {5, 0, bytes}}, 1).status().code(), Code::kInvalid);
  EXPECT_EQ(slots.Place(1, {kPartnerImage, {5, 1, 0}}, 1).status().code(), Code::kInvalid);
  EXPECT_EQ(slots.Place(1, {kPartnerImage, {5, 0, UINT64_MAX}}, 2).status().code(), Code::kInvalid);
  EXPECT_EQ(slots.Place(1, {kPartnerImage, {6, 0, 0}}, 1).status().code(), Code::kInvalid);  // another save
  EXPECT_EQ(slots.Place(0, {kPartnerImage, {5, 0, 0}}, 1).status().code(), Code::kInvalid);  // no ward
  EXPECT_EQ(slots.Take(1, {kPartnerBegin, {7}}, {}).code(), Code::kDamage);                  // no sidecar
}

}  // namespace
}  // namespace cairn
