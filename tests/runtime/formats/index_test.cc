#include "runtime/formats/index.h"

#include <flatbuffers/flatbuffers.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/formats/index_generated.h"
#include "tests/runtime/formats/corrupt.h"
#include "tests/runtime/hex.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

Index Example() {
  Index index;
  index.world_size = 2;
  index.files = {{1, 5000, Hash128Of(std::string_view("one"))},
                 {2, 4096 + 24, Hash128Of(std::string_view("two"))}};
  index.saved.arrays = {
      {"u", DType::kF64, true, {4, 3}}, {"t", DType::kI32, false, {}}, {"none", DType::kBF16, false, {0, 7}}};
  index.saved.boxes = {{0, 0, 4096, {{0, 0}, {4, 2}}}, {0, 1, 4096, {{1, 2}, {3, 1}}}, {1, 0, 4992, {}}};
  return index;
}

TEST(Index, DecodesWhatWasEncoded) {
  const Result<std::string> bytes = EncodeIndex(Example());
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const Result<Index> index = DecodeIndex(*bytes);
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(index->world_size, 2u);
  EXPECT_EQ(index->files, Example().files);
  EXPECT_EQ(index->saved.arrays, Example().saved.arrays);
  ASSERT_EQ(index->saved.boxes.size(), 3u);
  EXPECT_EQ(index->saved.boxes[1].array, 0u);
  EXPECT_EQ(index->saved.boxes[1].file, 1u);
  EXPECT_EQ(index->saved.boxes[1].file_offset, 4096u);
  EXPECT_EQ(index->saved.boxes[1].box, (Box{{1, 2}, {3, 1}}));
  EXPECT_EQ(index->saved.boxes[2].box, Box{});
}

TEST(Index, HasTheHeaderOfItsPage) {
  const std::string bytes = *EncodeIndex(Example());
  // magic, version 1, header of 48 bytes
  EXPECT_EQ(ToHex(bytes.substr(0, 16)),
            "434149524e494458"
            "01000000"
            "30000000");
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>((bytes.size() - 48) >> (8 * i) & 0xff);
  EXPECT_EQ(bytes.substr(16, 8), length);
  EXPECT_EQ(ToHex(bytes.substr(24, 8)), "0000000000000000");
  EXPECT_EQ(ToHex(bytes.substr(32, 16)), Hash128Of(std::string_view(bytes).substr(48)).ToHex());
}

TEST(Index, NoticesEveryCorruption) { ExpectEveryCorruptionIsDamage(*EncodeIndex(Example()), DecodeIndex); }

TEST(Index, IsReadAtAnyAlignment) {
  const std::string shifted = "x" + *EncodeIndex(Example());
  EXPECT_TRUE(DecodeIndex(std::string_view(shifted).substr(1)).ok());
}

TEST(Index, ThatNoReaderCouldTrustIsRefused) {
  const std::vector<std::pair<std::string, std::function<void(Index&)>>> faults = {
      {"world size is 0", [](Index& i) { i.world_size = 0; }},
      {"file number 2 is 0 or occurs twice", [](Index& i) { i.files[0].number = 2; }},
      {"\"u\" is empty or occurs twice", [](Index& i) { i.saved.arrays[1].name = "u"; }},
      {"impossible shape",
       [](Index& i) {
         i.saved.arrays[2].shape = {-1, 7};
       }},
      {"impossible shape",
       [](Index& i) {
         i.saved.arrays[2].shape = {int64_t{1} << 40, int64_t{1} << 40};
       }},
      {"not inside shape [4, 3]", [](Index& i) { i.saved.boxes[1].box.extent[0] = 4; }},
      {"not inside shape [4, 3]", [](Index& i) { i.saved.boxes[1].box.offset[1] = INT64_MAX; }},
      {"not inside shape [4, 3]", [](Index& i) { i.saved.boxes[1].box.offset[1] = -1; }},
      {"is empty or", [](Index& i) { i.saved.boxes[1].box.extent[1] = 0; }},
      {"another number of dimensions",
       [](Index& i) {
         i.saved.boxes[1].box = Box{{0}, {1}};
       }},
      {"file 2, which is not there", [](Index& i) { i.saved.boxes[1].file = 2; }},
      {"not lie inside its file of 4120 bytes", [](Index& i) { i.saved.boxes[1].file_offset = 4097; }},
      {"not lie inside its file", [](Index& i) { i.saved.boxes[1].file_offset = UINT64_MAX; }},
      {"not grouped by array", [](Index& i) { std::swap(i.saved.boxes[0], i.saved.boxes[2]); }},
      {"array 3, which is not there", [](Index& i) { i.saved.boxes[2].array = 3; }},
  };
  for (const auto& [message, break_it] : faults) {
    Index index = Example();
    break_it(index);
    EXPECT_EQ(ValidateIndex(index).code(), Code::kDamage) << message;
    const Status status = EncodeIndex(index).status();
    EXPECT_EQ(status.code(), Code::kInvalid) << message;
    EXPECT_THAT(status.message(), HasSubstr(message));
  }
}

// A file around a payload that a stranger made, with a correct hash.
Status DecodePayload(const flatbuffers::FlatBufferBuilder& builder) {
  const std::string payload(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  std::string bytes = (*EncodeIndex(Example())).substr(0, 16);
  for (int i = 0; i < 16; ++i) bytes += i < 8 ? static_cast<char>(payload.size() >> (8 * i) & 0xff) : '\0';
  const Hash128 hash = Hash128Of(payload);
  bytes.append(reinterpret_cast<const char*>(hash.bytes.data()), 16).append(payload);
  return DecodeIndex(bytes).status();
}

flatbuffers::Offset<fbs::Array> MakeArray(flatbuffers::FlatBufferBuilder& builder, uint8_t dtype,
                                          const std::vector<int64_t>& shape, size_t boxes, size_t range) {
  const std::vector<uint32_t> files(boxes, 0);
  const std::vector<uint64_t> offsets(boxes, 0);
  const std::vector<int64_t> ranges(range, 0);
  return fbs::CreateArrayDirect(builder, "a", dtype, false, &shape, &files, &offsets, &ranges);
}

TEST(Index, WithForeignValuesIsDamage) {
  const std::vector<int64_t> long_shape(9, 1);
  struct Case {
    std::string message;
    uint8_t dtype;
    std::vector<int64_t> shape;
    size_t boxes, range;
  };
  for (const Case& c :
       {Case{"dtype 200", 200, {1}, 0, 0}, Case{"more than 8 dimensions", 0, long_shape, 0, 0},
        Case{"different lengths", 0, {1}, 2, 3}}) {
    flatbuffers::FlatBufferBuilder builder;
    const std::vector<fbs::File> files;
    const std::vector<flatbuffers::Offset<fbs::Array>> arrays = {
        MakeArray(builder, c.dtype, c.shape, c.boxes, c.range)};
    builder.Finish(fbs::CreateIndexDirect(builder, 1, &files, &arrays));
    const Status status = DecodePayload(builder);
    EXPECT_EQ(status.code(), Code::kDamage);
    EXPECT_THAT(status.message(), HasSubstr(c.message));
  }
}

TEST(Index, WhoseArraysShareTheirBoxesDoesNotBlowUp) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<fbs::File> files;
  const auto array = MakeArray(builder, 0, {}, 100'000, 0);
  const std::vector<flatbuffers::Offset<fbs::Array>> arrays(30'000, array);  // 3 * 10^9 boxes in 1.3 MB
  builder.Finish(fbs::CreateIndexDirect(builder, 1, &files, &arrays));
  EXPECT_THAT(DecodePayload(builder).message(), HasSubstr("share their boxes"));
}

}  // namespace
}  // namespace cairn
