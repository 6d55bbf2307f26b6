#include "runtime/control/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/control/wire.h"

namespace cairn {
namespace {

Secret Key(uint8_t fill) {
  Secret key;
  key.bytes.fill(fill);
  return key;
}

TEST(Frame, HasTheDocumentedLayout) {
  const std::string frame = FrameEncoder(Key(1)).Encode(0x0203, "abc");
  ASSERT_EQ(frame.size(), 16u + 3u + 16u);
  EXPECT_EQ(frame.substr(0, 19), std::string("\x03\0\0\0"
                                             "\x03\x02"
                                             "\x01\0"
                                             "\0\0\0\0\0\0\0\0"
                                             "abc",
                                             19));
}

TEST(FrameDecoder, TakesFramesInChunksOfAnySize) {
  FrameEncoder encoder(Key(1));
  std::string stream = encoder.Encode(1, "first");
  stream += encoder.Encode(2, "");
  stream += encoder.Encode(3, std::string(1000, 'x'));
  for (const size_t chunk : {size_t{1}, size_t{7}, size_t{40}, stream.size()}) {
    FrameDecoder decoder(Key(1));
    std::vector<Frame> frames;
    for (size_t at = 0; at < stream.size(); at += chunk) {
      ASSERT_TRUE(decoder.Feed(std::string_view(stream).substr(at, chunk), &frames).ok());
    }
    ASSERT_EQ(frames.size(), 3u) << "chunks of " << chunk;
    EXPECT_EQ(frames[0].type, 1);
    EXPECT_EQ(frames[0].payload, "first");
    EXPECT_EQ(frames[1].payload, "");
    EXPECT_EQ(frames[2].payload, std::string(1000, 'x'));
  }
}

// A flipped bit in the length may make the frame longer, so that it is awaited rather than refused; it must never be delivered.
TEST(FrameDecoder, DeliversNoFrameOfWhichAnyBitWasFlipped) {
  const std::string frame = FrameEncoder(Key(1)).Encode(7, "payload");
  for (size_t byte = 0; byte < frame.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = frame;
      bad[byte] = static_cast<char>(bad[byte] ^ (1 << bit));
      FrameDecoder decoder(Key(1));
      std::vector<Frame> frames;
      const Status status = decoder.Feed(bad + std::string(64, '\0'), &frames);
      EXPECT_TRUE(frames.empty()) << "byte " << byte << " bit " << bit;
      const bool length_grew = byte < 4 && (bad[byte] & (1 << bit)) != 0;
      EXPECT_TRUE(!status.ok() || length_grew) << "byte " << byte << " bit " << bit;
    }
  }
}

TEST(FrameDecoder, RefusesAReplayedFrame) {
  const std::string frame = FrameEncoder(Key(1)).Encode(7, "pay me");
  FrameDecoder decoder(Key(1));
  std::vector<Frame> frames;
  ASSERT_TRUE(decoder.Feed(frame, &frames).ok());
  EXPECT_EQ(decoder.Feed(frame, &frames).code(), Code::kInvalid);
  EXPECT_EQ(frames.size(), 1u);
}

TEST(FrameDecoder, RefusesReorderedFrames) {
  FrameEncoder encoder(Key(1));
  const std::string first = encoder.Encode(7, "1"), second = encoder.Encode(7, "2");
  FrameDecoder decoder(Key(1));
  std::vector<Frame> frames;
  EXPECT_EQ(decoder.Feed(second + first, &frames).code(), Code::kInvalid);
  EXPECT_TRUE(frames.empty());
}

TEST(FrameDecoder, RefusesFramesOfAnotherKey) {
  FrameDecoder decoder(Key(2));
  std::vector<Frame> frames;
  EXPECT_EQ(decoder.Feed(FrameEncoder(Key(1)).Encode(7, "x"), &frames).code(), Code::kInvalid);
}

TEST(FrameDecoder, RefusesAnOversizeFrameFromItsHeaderAlone) {
  std::string header;
  PutWire(&header, uint32_t{101});
  PutWire(&header, uint16_t{7});
  PutWire(&header, kFrameVersion);
  PutWire(&header, uint64_t{0});
  FrameDecoder decoder(Key(1), 100);
  std::vector<Frame> frames;
  const Status status = decoder.Feed(header, &frames);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_THAT(status.message(), testing::HasSubstr("101 bytes"));
}

TEST(FrameDecoder, StaysFailedOnceItFailed) {
  FrameDecoder decoder(Key(1));
  std::vector<Frame> frames;
  ASSERT_FALSE(decoder.Feed(std::string(16, 'x'), &frames).ok());
  EXPECT_FALSE(decoder.Feed(FrameEncoder(Key(1)).Encode(7, "good"), &frames).ok());
  EXPECT_TRUE(frames.empty());
}

TEST(Secret, RoundTripsThroughHex) {
  const Secret secret = Secret::Random();
  auto parsed = Secret::FromHex(secret.Hex());
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->bytes, secret.bytes);
  EXPECT_EQ(secret.Hex().size(), 64u);
}

TEST(Secret, RefusesWhatIsNoToken) {
  for (const std::string& text :
       {std::string(), std::string(63, 'a'), std::string(66, 'a'), std::string(64, 'g')}) {
    EXPECT_EQ(Secret::FromHex(text).status().code(), Code::kInvalid) << text;
  }
}

}  // namespace
}  // namespace cairn
