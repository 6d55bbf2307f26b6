#include "runtime/formats/counter.h"

#include <gtest/gtest.h>

#include "tests/runtime/formats/corrupt.h"
#include "tests/runtime/hex.h"

namespace cairn {
namespace {

TEST(Counter, EncodesAsItsPageSays) {  // the hash was computed with Python's xxhash
  EXPECT_EQ(
      ToHex(EncodeCounter({0x0102030405060708, true})),
      "434149524e434e54010000003000000008070605040302010100000000000000b80a0567b0b6701fc281061beb79ddd8");
}

TEST(Counter, DecodesWhatWasEncoded) {
  const Counter counter{42, false};
  EXPECT_EQ(*DecodeCounter(EncodeCounter(counter)), counter);
}

TEST(Counter, NoticesEveryCorruption) {
  ExpectEveryCorruptionIsDamage(EncodeCounter({7, false}), DecodeCounter);
}

}  // namespace
}  // namespace cairn
