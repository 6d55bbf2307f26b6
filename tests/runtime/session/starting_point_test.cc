#include "runtime/session/starting_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StartingPoint : public ::testing::Test {
 protected:
  std::string Made(const std::string& file) {
    const std::filesystem::path path = tmp_.path() + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    return path;
  }
  std::string Refusal(const std::string& text) { return FindOrigin(text).status().message(); }

  TempDir tmp_;
};

TEST_F(StartingPoint, IsAForeignStateOrAPartOfIt) {
  const std::string file = Made("hf/model.safetensors"), folder = tmp_.path() + "/hf";
  Made("dcp/.metadata");
  EXPECT_EQ(*FindOrigin(file), (Origin{"safetensors", file, "", ""}));
  EXPECT_EQ(*FindOrigin(folder + "/"), (Origin{"safetensors", folder, "", ""}));
  EXPECT_EQ(*FindOrigin(tmp_.path() + "/dcp:weights"),
            (Origin{"dcp", tmp_.path() + "/dcp", "", "", "model.*"}));
  EXPECT_EQ(*FindOrigin(folder + ":only=u,v.*"), (Origin{"safetensors", folder, "", "", "u,v.*"}));
  EXPECT_THAT(PatternsOf(*FindOrigin(folder + ":only=u,v.*")), ElementsAre("u", "v.*"));
  EXPECT_THAT(PatternsOf(*FindOrigin(folder)), IsEmpty());
  EXPECT_EQ(OriginTitle({"cairn", "/r", "id", "step-1", "model.*"}), "/r@step-1:only=model.*");
  Made("odd:weights/model.safetensors");  // a name is a name
  EXPECT_EQ(FindOrigin(tmp_.path() + "/odd:weights")->only, "");
}

TEST_F(StartingPoint, SaysWhatItTakesWhereThereIsNothingOfTheKind) {
  Made("torch/pytorch_model.bin");
  EXPECT_THAT(Refusal(tmp_.path() + "/torch:weights"),
              AllOf(HasSubstr("--checkpoint-from=" + tmp_.path() + "/torch:weights: "),
                    HasSubstr("is none of what a run can begin from")));
  EXPECT_THAT(Refusal(tmp_.path() + "/away"), HasSubstr("/away does not exist"));
  EXPECT_THAT(Refusal(tmp_.path() + "/torch:only=a,"), HasSubstr("a pattern of names is empty"));
}

TEST_F(StartingPoint, OfARunThatHasBegunFromElsewhereIsRefused) {
  const std::string file = Made("hf/model.safetensors");
  const Origin origin{"safetensors", file, "", "", "model.*"};
  EXPECT_TRUE(CheckOrigin(file + ":weights", origin).ok());
  EXPECT_THAT(CheckOrigin(file, origin).message(),
              HasSubstr("the run has begun from " + file + ":only=model.*, and has saved nothing since"));
  EXPECT_FALSE(CheckOrigin(Made("hf2/model.safetensors") + ":weights", origin).ok());
}

}  // namespace
}  // namespace cairn
