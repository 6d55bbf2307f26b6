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

// "w" [6, 5] F32 is cut into 4 and 2 rows for ranks 1 and 2, or 4 and 3, which are replicas; "r" is a scalar on all six.
// "x" has no rule.
Index WithRules() {
  Index index;
  index.world_size = 6;
  index.files = {{1, 4096 + 8, Hash128Of(std::string_view("one"))}, {2, 4096 + 80, {}}, {3, 8192 + 43, {}}};
  SavedLayout& saved = index.saved;
  saved.arrays = {
      {"w", DType::kF32, true, {6, 5}}, {"x", DType::kU8, false, {3}}, {"r", DType::kF64, false, {}}};
  saved.boxes = {{1, 2, 8192 + 40, {{0}, {3}}}};
  saved.grids.cuts = {*Cuts::FromRuns(std::vector<Cuts::Run>{{1, 4}, {1, 2}}),
                      *Cuts::FromRuns(std::vector<Cuts::Run>{{1, 5}})};
  saved.grids.rules = {{1, {{2, 2, 0, -1}, {2, 1, 1, 0}}, {0, 1}}, {0, {{6, 1, 0, -1}}, {}}};
  saved.grids.rule_of = {0, kNoRule, 1};
  saved.world_size = 6;
  saved.min_split_bytes = 1 << 20;
  saved.files = FilesOf(index.files);
  return index;
}

TEST(Index, KeepsRules) {
  const Result<std::string> bytes = EncodeIndex(WithRules());
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const Result<Index> index = DecodeIndex(*bytes);
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(index->files, WithRules().files);
  const SavedLayout& saved = index->saved;
  EXPECT_EQ(saved.arrays, WithRules().saved.arrays);
  EXPECT_EQ(saved.world_size, 6u);
  EXPECT_EQ(saved.min_split_bytes, uint64_t{1} << 20);
  EXPECT_EQ(saved.grids.cuts, WithRules().saved.grids.cuts);
  EXPECT_EQ(saved.grids.rules, WithRules().saved.grids.rules);
  EXPECT_EQ(saved.grids.rule_of, WithRules().saved.grids.rule_of);
  ASSERT_EQ(saved.boxes.size(), 1u);
  EXPECT_EQ(saved.boxes[0].array, 1u);
  ASSERT_EQ(saved.files.size(), 3u);

  // Rows 3 to 5: the last of rank 1's four at byte 60 of its 80, the first of rank 2's two behind its header.
  const Result<SavedIndex> found = SavedIndex::Make(saved);
  ASSERT_TRUE(found.ok());
  const auto parts = found->BoxesIn(0, {{3, 0}, {2, 5}});
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].saved.file, 1u);
  EXPECT_EQ((*parts)[0].saved.file_offset, 4096u);
  EXPECT_EQ((*parts)[0].saved.box, (Box{{0, 0}, {4, 5}}));
  EXPECT_EQ((*parts)[0].region, (Box{{3, 0}, {1, 5}}));
  EXPECT_EQ((*parts)[1].saved.file, 2u);
  EXPECT_EQ((*parts)[1].saved.file_offset, 8192u);
  EXPECT_EQ((*parts)[1].region, (Box{{4, 0}, {1, 5}}));
}

TEST(Index, WhoseFilesCannotHoldItsArraysIsDamageForWhoeverNeedsThem) {
  Index index = WithRules();
  index.files[1].bytes = 79;
  index.saved.files = FilesOf(index.files);
  const Result<SavedIndex> found = SavedIndex::Make(index.saved);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->BoxesIn(0, {{0, 0}, {1, 5}}).status().message(),
            "file number 2 has 79 bytes, its arrays take 80");
  EXPECT_TRUE(found->BoxesIn(0, {{4, 0}, {1, 5}}).ok());
  index.files.erase(index.files.begin() + 1);
  index.saved.files = FilesOf(index.files);
  const Result<SavedIndex> without = SavedIndex::Make(index.saved);
  ASSERT_TRUE(without.ok());
  EXPECT_EQ(without->BoxesIn(0, {{0, 0}, {1, 5}}).status().code(), Code::kDamage);
}

// 10000 arrays of three kinds on 16384 ranks, with names as PyTorch gives them.
TEST(Index, StaysSmallAtManyRanksAndArrays) {
  Index index;
  index.world_size = 16384;
  SavedLayout& saved = index.saved;
  saved.world_size = index.world_size;
  saved.min_split_bytes = 1 << 20;
  saved.grids.cuts = {*Cuts::FromRuns(std::vector<Cuts::Run>{{16384, 3}}),
                      *Cuts::FromRuns(std::vector<Cuts::Run>{{1, 4096}}),
                      *Cuts::FromRuns(std::vector<Cuts::Run>{{2048, 7}})};
  saved.grids.rules = {{0, {{16384, 1, 1, 0}}, {0, 1}},
                       {0, {{16384, 1, 1, 0}}, {0}},
                       {0, {{8, 2048, 0, -1}, {2048, 1, 1, 0}}, {2, 1}}};
  for (uint32_t a = 0; a < 10000; ++a) {
    saved.grids.rule_of.push_back(a % 3);
    saved.arrays.push_back(
        {"optim.state.model.layers." + std::to_string(a) + ".attention.wq.weight.exp_avg_sq", DType::kF32,
         false, Grid(saved.grids, a % 3).shape()});
  }
  for (uint32_t number = 1; number <= index.world_size; ++number)
    index.files.push_back({number, 4096 + 12, {}});
  saved.files = FilesOf(index.files);
  const Result<std::string> bytes = EncodeIndex(index);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  EXPECT_LE(bytes->size(), size_t{2} << 20);
  EXPECT_TRUE(DecodeIndex(*bytes).ok());
}

TEST(Index, OfANewerVersionIsNoDamage) {
  std::string bytes = *EncodeIndex(Example());
  bytes[8] = 2;
  EXPECT_EQ(DecodeIndex(bytes).status().code(), Code::kDamage);  // a bit has turned
  const Hash128 own = Hash128Of(std::string_view(bytes).substr(0, 24));
  bytes.replace(24, 8, reinterpret_cast<const char*>(own.bytes.data()), 8);
  const Status status = DecodeIndex(bytes).status();
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_EQ(status.message(),
            "index: version 2 was written by a newer Cairn, this one reads up to 1: update this one");
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
  EXPECT_EQ(ToHex(bytes.substr(24, 8)),
            Hash128Of(std::string_view(bytes).substr(0, 24)).ToHex().substr(0, 16));
  EXPECT_EQ(ToHex(bytes.substr(32, 16)), Hash128Of(std::string_view(bytes).substr(48)).ToHex());
}

TEST(Index, NoticesEveryCorruption) {
  ExpectEveryCorruptionIsDamage(*EncodeIndex(Example()), DecodeIndex);
  ExpectEveryCorruptionIsDamage(*EncodeIndex(WithRules()), DecodeIndex);
}

TEST(Index, IsReadAtAnyAlignment) {
  const std::string shifted = "x" + *EncodeIndex(Example());
  EXPECT_TRUE(DecodeIndex(std::string_view(shifted).substr(1)).ok());
}

TEST(Index, ThatNoReaderCouldTrustIsRefused) {
  const std::vector<std::pair<std::string, std::function<void(Index&)>>> faults = {
      {"world size is 0", [](Index& i) { i.world_size = 0; }},
      {"file number 2 occurs twice", [](Index& i) { i.files[0].number = 2; }},
      {"\"u\" occurs twice", [](Index& i) { i.saved.arrays[1].name = "u"; }},
      {"an array has no name", [](Index& i) { i.saved.arrays[1].name = ""; }},
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

TEST(Index, WithRulesThatNoReaderCouldTrustIsRefused) {
  const std::vector<std::pair<std::string, std::function<void(Index&)>>> faults = {
      {"grid rule 0 is impossible with 6 ranks", [](Index& i) { i.saved.grids.rules[0].first_rank = 3; }},
      {"has a rule and yet a box", [](Index& i) { i.saved.boxes[0].array = 0; }},
      {"\"w\" has a rule of another shape", [](Index& i) { i.saved.arrays[0].shape[1] = 4; }},
      {"out of order",
       [](Index& i) {
         std::swap(i.files[0], i.files[1]);
         i.saved.files = FilesOf(i.files);
       }},
      {"for another save", [](Index& i) { i.saved.files.pop_back(); }},
      {"for another save", [](Index& i) { i.saved.world_size = 7; }},
  };
  for (const auto& [message, break_it] : faults) {
    Index index = WithRules();
    break_it(index);
    EXPECT_EQ(ValidateIndex(index).code(), Code::kDamage) << message;
    EXPECT_THAT(EncodeIndex(index).status().message(), HasSubstr(message));
  }
}

// A file around a payload that a stranger made, with a correct hash.
Status DecodePayload(const flatbuffers::FlatBufferBuilder& builder) {
  const std::string payload(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  std::string bytes = (*EncodeIndex(Example())).substr(0, 16);
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(payload.size() >> (8 * i) & 0xff);
  const Hash128 own = Hash128Of(bytes), hash = Hash128Of(payload);
  bytes.append(reinterpret_cast<const char*>(own.bytes.data()), 8);
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
       {Case{"more than 8 dimensions", 0, long_shape, 0, 0}, Case{"different lengths", 0, {1}, 2, 3}}) {
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

TEST(Index, WithAnElementTypeOfANewerCairnIsNoDamage) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<fbs::File> files;
  const std::vector<flatbuffers::Offset<fbs::Array>> arrays = {MakeArray(builder, 200, {1}, 0, 0)};
  builder.Finish(fbs::CreateIndexDirect(builder, 1, &files, &arrays));
  const Status status = DecodePayload(builder);
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("array \"a\" has element type number 200, which a newer Cairn"));
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
