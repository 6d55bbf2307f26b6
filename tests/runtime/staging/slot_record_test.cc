#include "runtime/staging/slot_record.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cairn {
namespace {

std::string Record() {
  const RecordShape shape{"0123456789abcdef", {{"seed", 4}, {"empty", 0}, {"rng", 5}}};
  std::vector<std::byte> memory(SlotRecord::BytesFor(shape));
  const SlotRecord record(memory.data(), shape);
  record.Stamp({.label = -7, .count = 42, .final = true});
  record.StoreBlob(0, reinterpret_cast<const std::byte*>("abcd"), 4);
  record.StoreBlob(2, reinterpret_cast<const std::byte*>("xyz"), 3);
  return {reinterpret_cast<const char*>(memory.data()), memory.size()};
}

TEST(SlotRecord, GivesBackWhatWasStored) {
  const auto content = DecodeSlotRecord(Record());
  ASSERT_TRUE(content.ok()) << content.status().message();
  EXPECT_EQ(content->run_id, "0123456789abcdef");
  EXPECT_EQ(content->stamp, (SnapshotStamp{.label = -7, .count = 42, .final = true}));
  EXPECT_EQ(content->blobs,
            (std::map<std::string, std::string>{{"seed", "abcd"}, {"empty", ""}, {"rng", "xyz"}}));
}

TEST(SlotRecord, LiesAsThePageSays) {
  const std::string bytes = Record();
  // 16 + (4 + 16) + 4 + 3 × 12 + 12 of names + 16 for the head, then the stamp and the blobs.
  ASSERT_EQ(bytes.size(), 104u + 24 + (8 + 4) + 8 + (8 + 5));
  EXPECT_EQ(bytes.substr(0, 8), "CAIRNREC");
  EXPECT_EQ(bytes.substr(8, 8), std::string("\1\0\0\0\x68\0\0\0", 8));
  EXPECT_EQ(bytes.substr(104, 24),
            std::string("\xf9\xff\xff\xff\xff\xff\xff\xff\x2a\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 24));
  EXPECT_EQ(bytes.substr(128), std::string("\4\0\0\0\0\0\0\0abcd"
                                           "\0\0\0\0\0\0\0\0"
                                           "\3\0\0\0\0\0\0\0xyz\0\0",
                                           33));
}

TEST(SlotRecord, RefusesEveryLengthButItsOwnAndEveryChangeOfItsHead) {
  const std::string bytes = Record();
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_EQ(DecodeSlotRecord(bytes.substr(0, length)).status().code(), Code::kDamage) << length;
  EXPECT_EQ(DecodeSlotRecord(bytes + "x").status().code(), Code::kDamage);
  for (size_t at = 0; at < 104; ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_EQ(DecodeSlotRecord(changed).status().code(), Code::kDamage) << at;
  }
}

TEST(SlotRecord, RefusesABlobThatIsLongerThanItsRoom) {
  std::string bytes = Record();
  bytes[128] = 5;
  EXPECT_EQ(DecodeSlotRecord(bytes).status().message(), "record: blob \"seed\" is longer than its room");
}

TEST(LayoutFile, GivesBackItsContentAndRefusesAnyOther) {
  const std::string file = EncodeLayoutFile("what the session knows");
  EXPECT_EQ(*DecodeLayoutFile(file), "what the session knows");
  for (size_t at = 0; at < file.size(); ++at) {
    if (at >= 12 && at < 16) continue;  // reserved
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_EQ(DecodeLayoutFile(changed).status().code(), Code::kDamage) << at;
  }
  EXPECT_FALSE(DecodeLayoutFile(file.substr(0, file.size() - 1)).ok());
  EXPECT_FALSE(DecodeLayoutFile("").ok());
}

}  // namespace
}  // namespace cairn
