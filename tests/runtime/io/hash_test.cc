#include "runtime/io/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn {
namespace {

// The expected digests were computed with the Python package xxhash.
TEST(Hash128, IsXxh3With128BitsInCanonicalOrder) {
  EXPECT_EQ(Hash128Of(std::string_view("")).ToHex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(Hash128Of(std::string_view("abc")).ToHex(), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash128, GivenInPartsIsTheHashOfTheWhole) {
  std::string bytes;
  for (int i = 0; i < 8 * 256; ++i) bytes += static_cast<char>(i);
  Hasher128 hasher;
  for (size_t at = 0; at < bytes.size();) {
    const size_t n = std::min<size_t>(at % 97 + 1, bytes.size() - at);
    hasher.Update(std::as_bytes(std::span(bytes).subspan(at, n)));
    at += n;
  }
  EXPECT_EQ(hasher.Finish().ToHex(), "df73e0768dd183fadd420471ff96bd00");
}

TEST(Hash128, HasExactlyOneHexForm) {
  const auto hash = Hash128::FromHex("06b05ab6733a618578af5f94892f3950");
  ASSERT_TRUE(hash);
  EXPECT_EQ(*hash, Hash128Of(std::string_view("abc")));
  EXPECT_FALSE(Hash128::FromHex("06B05AB6733A618578AF5F94892F3950"));
  EXPECT_FALSE(Hash128::FromHex("06b05ab6733a618578af5f94892f395"));
  EXPECT_FALSE(Hash128::FromHex("06b05ab6733a618578af5f94892f395g"));
}

}  // namespace
}  // namespace cairn
