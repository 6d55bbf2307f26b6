#include "runtime/formats/sums.h"

#include <gtest/gtest.h>

#include "tests/runtime/formats/corrupt.h"
#include "tests/runtime/hex.h"

namespace cairn {
namespace {

// A file of 4 MiB of zeros and "tail"; the bytes were put together with Python's struct and xxhash, following the format's page.
constexpr std::string_view kEncoded =
    "434149524e53554d01000000000040000400400000000000020000000000000072d2faee42324c08368a9aa31fa98e6e"
    "34001ae2f947e773165f453a5f35c459f8ca20ee73d1c267e2d71c5f5d841b7fc8bdf7f185163e3db0f32200aead0985";

Sums Example() {
  return {(4 << 20) + 4, {Hash128Of(std::string(4 << 20, '\0')), Hash128Of(std::string_view("tail"))}};
}

TEST(Sums, EncodeAsTheirPageSays) {
  EXPECT_EQ(ToHex(EncodeSums(Example())), kEncoded);
  EXPECT_EQ(EncodedSumsBytes(Example().file_bytes), 96u);
}

TEST(Sums, DecodeWhatWasEncoded) {
  const Result<Sums> sums = DecodeSums(FromHex(kEncoded));
  ASSERT_TRUE(sums.ok()) << sums.status().message();
  EXPECT_EQ(*sums, Example());
}

TEST(Sums, OfAnEmptyFileHaveNoBlocks) {
  const Result<Sums> sums = DecodeSums(EncodeSums({0, {}}));
  ASSERT_TRUE(sums.ok());
  EXPECT_TRUE(sums->blocks.empty());
}

TEST(Sums, NoticeEveryCorruption) { ExpectEveryCorruptionIsDamage(EncodeSums(Example()), DecodeSums); }

// Of any size and content, as long as magic, version and the checksum at the end are there.
TEST(Sums, OfANewerVersionAreNoDamage) {
  std::string newer = EncodeSums(Example()).substr(0, 80);
  newer[8] = 2;
  for (const std::string& more : {std::string(), std::string("a hash of another kind")}) {
    std::string bytes = newer + more;
    const Hash128 own = Hash128Of(bytes);
    EXPECT_EQ(DecodeSums(bytes + std::string(16, 'x')).status().code(), Code::kDamage);
    bytes.append(reinterpret_cast<const char*>(own.bytes.data()), 16);
    const Status status = DecodeSums(bytes).status();
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_EQ(
        status.message(),
        "checksum file: version 2 was written by a newer Cairn, this one reads up to 1: update this one");
  }
}

TEST(Sums, ThatClaimAHugeFileAllocateNothing) {
  std::string bytes = EncodeSums(Example());
  for (size_t i = 16; i < 24; ++i) bytes[i] = '\x7f';  // file bytes
  for (size_t i = 24; i < 32; ++i) bytes[i] = '\x01';  // blocks
  EXPECT_EQ(DecodeSums(bytes).status().code(), Code::kDamage);
}

TEST(Blocks, OfAFileAreFullExceptTheLast) {
  EXPECT_EQ(BlockCount(0), 0u);
  EXPECT_EQ(BlockCount(1), 1u);
  EXPECT_EQ(BlockCount(4194304), 1u);
  EXPECT_EQ(BlockCount(4194305), 2u);
  EXPECT_EQ(BlockBytes(4194305, 0), 4194304u);
  EXPECT_EQ(BlockBytes(4194305, 1), 1u);
  EXPECT_EQ(BlockBytes(8388608, 1), 4194304u);
}

}  // namespace
}  // namespace cairn
