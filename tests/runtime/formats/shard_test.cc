#include "runtime/formats/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <tuple>

#include "tests/runtime/hex.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<ShardTensor> Example() {
  return {
      {"flag", DType::kBool, {{5}, {3}}}, {"w", DType::kF32, {{0, 2}, {2, 2}}}, {"scalar", DType::kI64, {}}};
}

TEST(Shard, IsLaidOutByElementWidthFromAnAlignedStart) {
  const Result<ShardLayout> layout = LayOutShard(Example());
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_EQ(layout->header.size(), 4096u);
  EXPECT_THAT(layout->offsets, ElementsAre(4096 + 8 + 16, 4096 + 8, 4096));
  EXPECT_THAT(layout->bytes, ElementsAre(3, 16, 8));
  EXPECT_EQ(layout->file_bytes, 4096u + 27);
}

TEST(Shard, HasASafetensorsHeaderWithPyTorchsShardingInfo) {
  const std::string header = LayOutShard(Example())->header;
  EXPECT_EQ(ToHex(header.substr(0, 8)), "f80f000000000000");  // 4088
  const std::string json =
      R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"scalar\":{\"saved_offsets\":[]},\"w\":{\"saved_offsets\":[0,2]},)"
      R"(\"flag\":{\"saved_offsets\":[5]}}","DCP_VERSION":"1.0","format":"pt"},)"
      R"("scalar":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("w":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]},)"
      R"("flag":{"dtype":"BOOL","shape":[3],"data_offsets":[24,27]}})";
  EXPECT_EQ(header.substr(8, json.size()), json);
  EXPECT_EQ(header.find_first_not_of(' ', 8 + json.size()), std::string::npos);
}

TEST(Shard, ParsesWhatWasLaidOut) {
  const ShardLayout layout = *LayOutShard(Example());
  EXPECT_EQ(*ShardHeaderBytes(layout.header.substr(0, 8), layout.file_bytes), 4096u);
  const Result<ParsedShard> shard = ParseShard(layout.header, layout.file_bytes);
  ASSERT_TRUE(shard.ok()) << shard.status().message();
  ASSERT_EQ(shard->entries.size(), 3u);
  EXPECT_EQ(shard->entries[0].tensor, Example()[2]);
  EXPECT_EQ(shard->entries[1].tensor, Example()[1]);
  EXPECT_EQ(shard->entries[2].tensor, Example()[0]);
  EXPECT_EQ(shard->entries[1].offset, 4096u + 8);
  EXPECT_EQ(shard->entries[1].bytes, 16u);
}

// F4: two values in a byte; F6: four in three bytes.
std::vector<ShardTensor> SmallerThanAByte() {
  return {{"a", DType::kF6E2M3, {{1, 5}, {2, 3}}},
          {"b", DType::kF4, {{0, 7}, {2, 1}}},
          {"c", DType::kU8, {{0}, {1}}},
          {"d", DType::kBF16, {{0}, {1}}}};
}

TEST(Shard, CountsValuesWhereSeveralShareAnElement) {
  const Result<ShardLayout> layout = LayOutShard(SmallerThanAByte());
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  const std::string json =
      R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"d\":{\"saved_offsets\":[0]},\"a\":{\"saved_offsets\":[1,20]},)"
      R"(\"b\":{\"saved_offsets\":[0,14]},\"c\":{\"saved_offsets\":[0]}}","DCP_VERSION":"1.0","format":"pt"},)"
      R"("d":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},)"
      R"("a":{"dtype":"F6_E2M3","shape":[2,12],"data_offsets":[2,20]},)"
      R"("b":{"dtype":"F4","shape":[2,2],"data_offsets":[20,22]},)"
      R"("c":{"dtype":"U8","shape":[1],"data_offsets":[22,23]}})";
  EXPECT_EQ(layout->header.substr(8, json.size()), json);
  EXPECT_EQ(layout->file_bytes, 4096U + 23);
  const Result<ParsedShard> shard = ParseShard(layout->header, layout->file_bytes);
  ASSERT_TRUE(shard.ok()) << shard.status().message();
  EXPECT_EQ(shard->entries[1].tensor, SmallerThanAByte()[0]);
  EXPECT_EQ(shard->entries[2].tensor, SmallerThanAByte()[1]);
}

TEST(Shard, WithManyTensorsStillBeginsItsDataAligned) {
  std::vector<ShardTensor> tensors;
  for (int i = 0; i < 5000; ++i) tensors.push_back({"layers." + std::to_string(i), DType::kBF16, {{i}, {1}}});
  const ShardLayout layout = *LayOutShard(tensors);
  EXPECT_EQ(layout.header.size() % 4096, 0u);
  EXPECT_EQ(layout.offsets[0], layout.header.size());
  EXPECT_EQ(ParseShard(layout.header, layout.file_bytes)->entries.size(), 5000u);
}

TEST(Shard, WithoutTensorsIsAHeaderAlone) {
  const ShardLayout layout = *LayOutShard({});
  EXPECT_EQ(layout.file_bytes, 4096u);
  EXPECT_TRUE(ParseShard(layout.header, 4096).ok());
}

TEST(Shard, RefusesNamesAndBoxesThatTheFormatCannotHold) {
  const Box box{{0}, {1}};
  for (const std::vector<ShardTensor>& tensors :
       std::vector<std::vector<ShardTensor>>{{{"", DType::kU8, box}},
                                             {{"__metadata__", DType::kU8, box}},
                                             {{"a", DType::kU8, box}, {"a", DType::kU8, box}},
                                             {{"\xff", DType::kU8, box}},
                                             {{"a", DType::kU8, {{0}, {0}}}},
                                             {{"a", DType::kF4, {}}},
                                             {{"a", DType::kF4, {{0}, {INT64_MAX / 2 + 1}}}},
                                             {{"a", DType::kF64, {{0}, {INT64_MAX}}}}}) {
    EXPECT_EQ(LayOutShard(tensors).status().code(), Code::kInvalid);
  }
}

Result<ParsedShard> Parse(const std::string& json, uint64_t data_bytes) {
  std::string header;
  for (int i = 0; i < 8; ++i) header += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return ParseShard(header + json, 8 + json.size() + data_bytes);
}

TEST(Shard, OfOthersIsReadWithoutShardingInfo) {
  const auto shard = Parse(
      R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},"a":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]}})",
      6);
  ASSERT_TRUE(shard.ok()) << shard.status().message();
  EXPECT_EQ(shard->entries[0].tensor, (ShardTensor{"a", DType::kF16, {{0, 0}, {2, 1}}}));
  EXPECT_EQ(shard->entries[1].tensor.fqn, "b");
}

TEST(Shard, ThatEndsInsideAnElementIsNotForCairn) {
  for (const auto& [type, shape, bytes, values] :
       std::vector<std::tuple<std::string, std::string, int, std::string>>{{"F4", "[2, 3]", 3, "2"},
                                                                           {"F6_E3M2", "[4, 2]", 6, "4"}}) {
    std::string json = R"({"w":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":[0,)";
    json += std::to_string(bytes) + "]}}";
    const Status status = Parse(json, static_cast<uint64_t>(bytes)).status();
    EXPECT_EQ(status.code(), Code::kMismatch);
    EXPECT_THAT(status.message(), HasSubstr("\"w\" is " + type + " of shape " + shape));
    EXPECT_THAT(status.message(), HasSubstr("its last dimension has to be a multiple of " + values));
  }
  const auto offsets = Parse(
      R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"a\":{\"saved_offsets\":[3]}}"},"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}})",
      4);
  EXPECT_EQ(offsets.status().code(), Code::kDamage);
  EXPECT_THAT(offsets.status().message(), HasSubstr("saved_offsets of \"a\""));
}

TEST(Shard, ThatIsMalformedIsDamageWithTheReason) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"([])", "no JSON object"},
      {R"( {})", "no JSON object"},
      {R"({"a":)", "malformed"},
      {R"({"a":1})", "is no object"},
      {R"({"a":{"dtype":"U8","shape":[4]}})", "lacks"},
      {R"({"a":{"dtype":9,"shape":[4],"data_offsets":[0,4]}})", "the dtype of \"a\" is no text"},
      {R"({"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})", "malformed shape"},
      {R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,4],"data_offsets":[0,4]}})", "more than 8"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,5]}})", "do not fit its shape"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", "do not fit its shape"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0]}})", "do not fit its shape"},
      {R"({"a":{"dtype":"F64","shape":[4611686018427387904,2],"data_offsets":[0,4]}})",
       "do not fit its shape"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "end at byte 64 of a file of 65"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})", "\"a\" begins at byte"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
       "\"b\" begins at byte"},
      {R"({"__metadata__":1,"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       "__metadata__ is no object"},
      {R"({"__metadata__":{"DCP_SHARDING_INFO":"{"},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       "no JSON object"},
      {R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"a\":{\"saved_offsets\":[1,2]}}"},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       "do not fit its shape"},
      {R"({"__metadata__":{"DCP_SHARDING_INFO":"{\"a\":{\"saved_offsets\":[9223372036854775807]}}"},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       "overflow"},
  };
  for (const auto& [json, reason] : cases) {
    const Status status = Parse(json, 4).status();
    EXPECT_EQ(status.code(), Code::kDamage) << json;
    EXPECT_THAT(status.message(), HasSubstr(reason)) << json;
  }
  EXPECT_TRUE(Parse(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4).ok());
}

TEST(Shard, OfATypeThatCairnHasNotIsRefusedByName) {
  const auto shard = Parse(R"({"a":{"dtype":"F3_E1M1","shape":[4],"data_offsets":[0,4]}})", 4);
  EXPECT_EQ(shard.status().message(),
            "safetensors header: \"a\" is of dtype \"F3_E1M1\", which Cairn does not know: convert it to "
            "another one first");
}

TEST(Shard, WhoseHeaderClaimsMoreThanTheFileIsDamage) {
  EXPECT_EQ(ShardHeaderBytes(FromHex("ffffffffffffffff"), 100).status().code(), Code::kDamage);
  EXPECT_EQ(ShardHeaderBytes(FromHex("5d00000000000000"), 100).status().code(), Code::kDamage);  // 93
  EXPECT_EQ(*ShardHeaderBytes(FromHex("5c00000000000000"), 100), 100u);
  EXPECT_EQ(ShardHeaderBytes(FromHex("00ffffffffffffff"), UINT64_MAX).status().code(), Code::kDamage);
  EXPECT_EQ(ShardHeaderBytes("1234567", 7).status().code(), Code::kDamage);
}

TEST(Shard, WithAnyBitFlippedNeverCrashesTheParser) {
  const ShardLayout layout = *LayOutShard(Example());
  for (size_t at = 0; at < layout.header.size(); at += at < 600 ? 1 : 101) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string header = layout.header;
      header[at] = static_cast<char>(header[at] ^ 1 << bit);
      if (const auto shard = ParseShard(header, layout.file_bytes); !shard.ok()) {
        EXPECT_EQ(shard.status().code(), Code::kDamage);
      }
    }
  }
}

// CAIRN_TEST_PYTHON: a Python that has the packages safetensors and numpy (contrib/test makes one).
TEST(Shard, OpensWithTheSafetensorsLibrary) {
  const char* python = std::getenv("CAIRN_TEST_PYTHON");
  const std::string interpreter = python != nullptr ? python : "python3";
  if (std::system((interpreter + " -c 'import numpy, safetensors' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << interpreter << " lacks safetensors or numpy; set CAIRN_TEST_PYTHON";
  }
  TempDir dir;
  const ShardLayout layout = *LayOutShard(Example());
  std::string file = layout.header;
  file += FromHex("feffffffffffffff");                  // scalar = -2
  file += FromHex("0000803f00000040000040400000c0bf");  // w = [[1, 2], [3, -1.5]]
  file += FromHex("010001");                            // flag
  std::ofstream(dir / "s.safetensors", std::ios::binary) << file;
  std::ofstream(dir / "check.py") << R"(
import json, sys, numpy
from safetensors import safe_open
with safe_open(sys.argv[1], framework="np") as f:
    assert set(f.keys()) == {"flag", "w", "scalar"}, f.keys()
    assert f.get_tensor("w").dtype == numpy.float32 and f.get_tensor("w").tolist() == [[1, 2], [3, -1.5]]
    assert f.get_tensor("flag").tolist() == [True, False, True]
    assert f.get_tensor("scalar").shape == () and f.get_tensor("scalar") == -2
    info = json.loads(f.metadata()["DCP_SHARDING_INFO"])
    assert info == {"w": {"saved_offsets": [0, 2]}, "flag": {"saved_offsets": [5]}, "scalar": {"saved_offsets": []}}
)";
  EXPECT_EQ(std::system((interpreter + " " + (dir / "check.py") + " " + (dir / "s.safetensors")).c_str()), 0);
}

}  // namespace
}  // namespace cairn
