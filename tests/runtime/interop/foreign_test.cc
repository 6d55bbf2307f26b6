#include "runtime/interop/foreign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/interop/safetensors_file.h"
#include "tests/runtime/command/program.h"
#include "tests/runtime/interop/made_run.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kGolden = CAIRN_SOURCE_DIR "/tests/runtime/interop/golden/dcp";

std::string File(const std::string& json, const std::string& data) {
  std::string length(8, '\0');
  length[0] = static_cast<char>(json.size());
  return length + json + data;
}

std::string FileOf(const std::string& name, const std::string& data) {
  return File("{\"" + name + R"(":{"dtype":"U8","shape":[)" + std::to_string(data.size()) +
                  R"(],"data_offsets":[0,)" + std::to_string(data.size()) + "]}}",
              data);
}

TEST(Foreign, TellsFormatsApart) {
  const std::string folder = NewFolder();
  EXPECT_EQ(*ForeignFormat(folder), "");
  WriteText(folder + "/.hidden.safetensors", "");
  EXPECT_EQ(*ForeignFormat(folder), "");
  WriteText(folder + "/model.safetensors", "");
  EXPECT_EQ(*ForeignFormat(folder), "safetensors");
  EXPECT_EQ(*ForeignFormat(folder + "/model.safetensors"), "safetensors");
  EXPECT_EQ(*ForeignFormat(folder + "/away"), "");
  EXPECT_EQ(*ForeignFormat(kGolden), "dcp");
  const MadeRun run(AllKinds());
  EXPECT_EQ(*ForeignFormat(run.path()), "");
  EXPECT_EQ(*ForeignFormat(run.path() + "/" + run.checkpoint()), "");  // its shards are safetensors
}

TEST(Foreign, TakesNoAttemptThatWasNeverCommittedForAState) {
  const std::string attempt = "step-000000000007.e1.1f00c2d9";
  for (const std::string& name : {attempt, "dead-" + attempt, "removed-e2-" + attempt}) {
    const std::string folder = NewFolder() + "/" + name;
    fs::create_directory(folder);
    WriteText(folder + "/shard-00001-model-00001-of-00001.safetensors", FileOf("a", "12"));
    EXPECT_EQ(*ForeignFormat(folder), "");
    EXPECT_EQ(*ForeignFormat(folder + "/"), "");
  }
  for (const char* beside : {"shard-00001.sums", "index.bin"}) {
    const std::string folder = NewFolder();
    WriteText(folder + "/shard-00001-model-00001-of-00001.safetensors", FileOf("a", "12"));
    EXPECT_EQ(*ForeignFormat(folder), "safetensors");
    WriteText(folder + "/" + beside, "");
    EXPECT_EQ(*ForeignFormat(folder), "") << beside;
  }
}

TEST(Foreign, SaysThatAPathCannotBeLookedAt) {
  EXPECT_THAT(ForeignFormat(NewFolder() + "/" + std::string(300, 'x')).status().message(),
              HasSubstr("stat "));
}

TEST(Foreign, RefusesFilesThatHoldTheSameElements) {
  const std::string folder = NewFolder();
  WriteText(folder + "/model.safetensors", FileOf("a", "12"));
  WriteText(folder + "/old.safetensors", FileOf("a", "345"));
  const Status refused = DescribeForeign("safetensors", folder).status();
  EXPECT_EQ(refused.code(), Code::kDamage);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("\"a\", shape [3]"), HasSubstr("/model.safetensors"),
                                       HasSubstr("/old.safetensors")));
}

TEST(Foreign, ReadsATensorFromTheFileThatTheIndexGives) {
  const std::string folder = NewFolder();
  WriteText(folder + "/a.safetensors", FileOf("a", "12"));
  WriteText(
      folder + "/b.safetensors",
      File(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
          "xx3"));
  WriteText(folder + "/" + std::string(kHuggingFaceIndex),
            R"({"weight_map":{"a":"a.safetensors","b":"b.safetensors"}})");
  const auto state = DescribeForeign("safetensors", folder);
  ASSERT_TRUE(state.ok()) << state.status().message();
  ASSERT_EQ(state->index.saved.boxes.size(), 2u);
  const SavedBox& a = state->index.saved.boxes[0];
  EXPECT_EQ(ReadText(state->files[a.file]).substr(a.file_offset, 2), "12");
}

TEST(Foreign, ReadsTheFilesThatAnIndexNamesAndNoOthers) {
  const std::string folder = NewFolder();
  WriteText(folder + "/a.safetensors", FileOf("a", "12"));
  WriteText(folder + "/b.safetensors", FileOf("b", "345"));
  WriteText(folder + "/consolidated.safetensors", FileOf("a", "not it"));
  const std::string index = folder + "/" + std::string(kHuggingFaceIndex);
  WriteText(index, R"({"metadata":{},"weight_map":{"a":"a.safetensors","b":"b.safetensors"}})");
  const auto state = DescribeForeign("safetensors", folder);
  ASSERT_TRUE(state.ok()) << state.status().message();
  ASSERT_EQ(state->files, (std::vector<std::string>{folder + "/a.safetensors", folder + "/b.safetensors"}));
  ASSERT_TRUE(ValidateIndex(state->index).ok()) << ValidateIndex(state->index).message();
  ASSERT_EQ(state->index.saved.boxes.size(), 2u);
  const SavedBox& b = state->index.saved.boxes[1];
  EXPECT_EQ(ReadText(state->files[b.file]).substr(b.file_offset, 3), "345");

  const auto refusal = [&](const std::string& text) {
    WriteText(index, text);
    return DescribeForeign("safetensors", folder).status().message();
  };
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"a.safetensors","c":"b.safetensors"}})"),
              HasSubstr(folder + "/b.safetensors: does not hold \"c\""));
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"../a.safetensors"}})"),
              HasSubstr("is in no file of this folder"));
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"gone.safetensors"}})"), HasSubstr(folder + "/gone.safetensors"));
  EXPECT_THAT(refusal("{"), AllOf(HasSubstr(index), HasSubstr("no JSON object")));
}

TEST(Foreign, AnArrayThatIsNotStoredRowByRowIsForImportAlone) {
  const auto state = DescribeForeign("dcp", kGolden);
  EXPECT_EQ(state.status().code(), Code::kMismatch);
  EXPECT_THAT(state.status().message(),
              AllOf(HasSubstr("array \"transposed\" is not stored row by row"), HasSubstr("`cairn import`")));
}

}  // namespace
}  // namespace cairn
