#include "runtime/bulk/message.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

BulkHeader Sample() {
  BulkHeader header;
  header.subject = {0x0201, {0x0a, 0x0b0c, 0xffffffffffffffff}};
  header.bytes = 0x00400000;
  for (size_t i = 0; i < 16; ++i) header.hash.bytes[i] = static_cast<uint8_t>(0xe0 + i);
  return header;
}

TEST(BulkMessage, LaysItsHeaderOutAsThePageSays) {
  const std::string bytes = EncodeBulkHeader(Sample(), 7, Secret::Random());
  ASSERT_EQ(bytes.size(), 72u);
  const std::string expected(
      "\x01\x00\x01\x02\x00\x00\x40\x00"
      "\x07\x00\x00\x00\x00\x00\x00\x00"
      "\x0a\x00\x00\x00\x00\x00\x00\x00"
      "\x0c\x0b\x00\x00\x00\x00\x00\x00"
      "\xff\xff\xff\xff\xff\xff\xff\xff"
      "\xe0\xe1\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xeb\xec\xed\xee\xef",
      56);
  EXPECT_EQ(bytes.substr(0, 56), expected);
}

TEST(BulkMessage, IsReadBackWithItsKeyAndInItsPlaceOnly) {
  const Secret key = Secret::Random();
  const std::string bytes = EncodeBulkHeader(Sample(), 7, key);
  const auto header = DecodeBulkHeader(bytes, 7, key);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->subject, Sample().subject);
  EXPECT_EQ(header->bytes, Sample().bytes);
  EXPECT_EQ(header->hash, Sample().hash);
  EXPECT_EQ(DecodeBulkHeader(bytes, 8, key).status().code(), Code::kInvalid);  // replayed
  EXPECT_EQ(DecodeBulkHeader(bytes, 7, Secret::Random()).status().code(), Code::kInvalid);
}

TEST(BulkMessage, IsRefusedWithAnyBitChanged) {
  const Secret key = Secret::Random();
  const std::string bytes = EncodeBulkHeader(Sample(), 0, key);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(DecodeBulkHeader(changed, 0, key).status().code(), Code::kInvalid) << bit;
  }
}

}  // namespace
}  // namespace cairn
