#include "runtime/formats/blobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/io/hash.h"
#include "tests/runtime/formats/corrupt.h"
#include "tests/runtime/hex.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

// Encoded with the Python package cbor2, which also opens the whole file as one CBOR array.
constexpr std::string_view kEncoded =
    "8468434149524e424c42015b000000000000001fa163726e67a266706f6c696379667265736565646572616e6b7382420102f6"
    "500de64a3db1549871e2ad95c2d45f480e";

Blobs Example() { return {{{"rng", BlobPolicy::kReseed, {"\x01\x02", std::nullopt}}}}; }

TEST(Blobs, EncodeAsTheirPageSays) { EXPECT_EQ(ToHex(*EncodeBlobs(Example())), kEncoded); }

TEST(Blobs, DecodeWhatWasEncoded) {
  EXPECT_EQ(*DecodeBlobs(FromHex(kEncoded)), Example());
  const Blobs blobs{{{"b", BlobPolicy::kDrop, {std::string("\0\xff", 2), ""}},
                     {"a", BlobPolicy::kRefuse, {std::string(70'000, 'x'), "y"}}}};
  EXPECT_EQ(*DecodeBlobs(*EncodeBlobs(blobs)), blobs);
  EXPECT_EQ(*DecodeBlobs(*EncodeBlobs({})), Blobs());
}

TEST(Blobs, NoticeEveryCorruption) { ExpectEveryCorruptionIsDamage(*EncodeBlobs(Example()), DecodeBlobs); }

TEST(Blobs, WithBadNamesAreRefused) {
  EXPECT_EQ(EncodeBlobs({{{"", BlobPolicy::kDrop, {}}}}).status().code(), Code::kInvalid);
  EXPECT_EQ(EncodeBlobs({{{"\xff", BlobPolicy::kDrop, {}}}}).status().code(), Code::kInvalid);
  EXPECT_EQ(EncodeBlobs({{{"a", BlobPolicy::kDrop, {}}, {"a", BlobPolicy::kDrop, {}}}}).status().code(),
            Code::kInvalid);
  EXPECT_EQ(EncodeBlobs({{{"a", BlobPolicy::kDrop, {"x"}}, {"b", BlobPolicy::kDrop, {}}}}).status().code(),
            Code::kInvalid);
}

// A frame with a correct hash, as a stranger could make it.
Result<Blobs> DecodePayload(const std::string& payload) {
  std::string bytes = FromHex("8468434149524e424c42015b00000000");
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(payload.size() >> shift & 0xff);
  const Hash128 hash = Hash128Of(payload);
  return DecodeBlobs(bytes + payload + "\x50" +
                     std::string(reinterpret_cast<const char*>(hash.bytes.data()), 16));
}

TEST(Blobs, OfAnotherFormAreDamage) {
  EXPECT_TRUE(DecodePayload(FromHex("a0")).ok());
  for (const char* hex : {
           "",                                                  // nothing
           "80",                                                // a list
           "f6",                                                // null
           "a1616101",                                          // an item that is a number
           "a16161a166706f6c6963796378797a",                    // policy "xyz"
           "a16161a166706f6c69637981f6",                        // a list of policies
           "a16161a16572616e6b7381a0",                          // a map for a rank
           "a16161a16572616e6b738161ff",                        // text for a rank
           "a16161a16572616e6b73815b7fffffffffffffff",          // 2^63 - 1 bytes for a rank
           "a16161a16572616e6b739b7fffffffffffffff",            // 2^63 - 1 ranks
           "bb7fffffffffffffff",                                // 2^63 - 1 items
           "a16161a16572616e6b7381f600",                        // something behind the end
           "a161ffa266706f6c6963796464726f706572616e6b7381f6",  // a name that is no UTF-8
       }) {
    EXPECT_EQ(DecodePayload(FromHex(hex)).status().code(), Code::kDamage) << hex;
  }
}

TEST(Blobs, NestedWithoutEndAreDamageAndNoStackOverflow) {
  EXPECT_EQ(DecodePayload(std::string(1'000'000, '\x81')).status().code(), Code::kDamage);
  std::string maps;
  for (int i = 0; i < 300'000; ++i) maps += "\xa1\x61\x61";
  EXPECT_EQ(DecodePayload(maps).status().code(), Code::kDamage);
}

}  // namespace
}  // namespace cairn
