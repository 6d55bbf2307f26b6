#include "runtime/session/outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class OutputsTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name) const { return folder_ + "/" + name; }
  void Append(const std::string& name, const std::string& text) const {
    std::ofstream(File(name), std::ios::app) << text;
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(File(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  OutputLengths Lengths() const { return *DecodeOutputs(outputs_.Measure()); }
  TempDir dir_;
  const std::string folder_ = std::filesystem::canonical(dir_.path()).string();
  Outputs outputs_;
};

TEST_F(OutputsTest, AreCutBackToWhereTheyWere) {
  Append("a", std::string(5000, 'x') + "1\n");
  Append("b", "1\n");
  for (const char* name : {"a", "b", "later"}) ASSERT_TRUE(outputs_.Add(File(name)).ok());
  const OutputLengths saved = Lengths();
  EXPECT_EQ(saved.at(File("a")).bytes, 5002u);
  EXPECT_EQ(saved.at(File("b")), (Manifest::Output{2, Hash128Of(std::string_view("1\n"))}));
  EXPECT_EQ(saved.at(File("later")).bytes, 0u);
  for (const char* name : {"a", "later"}) Append(name, "2\n");
  const Outputs::CutReport report = outputs_.CutBack(saved);
  EXPECT_EQ(Read("a"), std::string(5000, 'x') + "1\n");
  EXPECT_EQ(Read("b"), "1\n");
  EXPECT_EQ(Read("later"), "");
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr(File("a") + " is cut from 5004 to 5002 bytes"),
                                        HasSubstr(File("later") + " is cut from 2 to 0 bytes")));
  EXPECT_THAT(report.warnings, ElementsAre());
}

TEST_F(OutputsTest, AreLeftAsTheyAreWhenTheyAreShorterOrOtherFilesOrGone) {
  for (const char* name : {"shorter", "other", "gone", "same"}) {
    Append(name, "one\ntwo\n");
    ASSERT_TRUE(outputs_.Add(File(name)).ok());
  }
  const OutputLengths saved = Lengths();
  std::filesystem::resize_file(File("shorter"), 4);
  std::ofstream(File("other")) << "ONE\ntwo\nthree\n";
  std::filesystem::remove(File("gone"));
  const Outputs::CutReport report = outputs_.CutBack(saved);
  EXPECT_EQ(Read("shorter"), "one\n");
  EXPECT_EQ(Read("other"), "ONE\ntwo\nthree\n");
  EXPECT_FALSE(std::filesystem::exists(File("gone")));
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("it has 4 bytes, and had 8 at the save"),
                                           HasSubstr("it is not the file that it was at the save"),
                                           HasSubstr(File("gone") + " is left as it is")));
  EXPECT_THAT(report.notes, ElementsAre());
}

TEST_F(OutputsTest, OfWhichTheCheckpointSaysNothingAreLeftAsTheyAre) {
  Append("a", "1\n");
  ASSERT_TRUE(outputs_.Add(File("a")).ok());
  ASSERT_TRUE(outputs_.Add(File("b")).ok());
  const Outputs::CutReport report = outputs_.CutBack({});
  EXPECT_THAT(report.warnings,
              ElementsAre(HasSubstr(File("a") + " is left as it is: nothing says how long")));
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr(File("b") + " is left as it is: nothing says how long")));
  EXPECT_EQ(Read("a"), "1\n");
}

TEST_F(OutputsTest, ThatWereThereAndAreAwayAtASaveAreNotMeasured) {
  Append("at add", "1\n");
  for (const char* name : {"at add", "at a save", "at the save before this life"})
    ASSERT_TRUE(outputs_.Add(File(name)).ok());
  Append("at a save", "1\n");
  EXPECT_EQ(Lengths().size(), 3u);
  outputs_.CutBack({{File("at the save before this life"), {2, Hash128Of(std::string_view("1\n"))}}});
  std::filesystem::remove(File("at add"));
  std::filesystem::remove(File("at a save"));
  EXPECT_TRUE(Lengths().empty());
}

TEST_F(OutputsTest, AreKnownByTheFileBehindALink) {
  Append("run3.log", "1\n");
  std::filesystem::create_symlink("run3.log", File("latest"));
  ASSERT_TRUE(outputs_.Add(File("latest")).ok());
  EXPECT_THAT(outputs_.paths(), ElementsAre(File("run3.log")));
  EXPECT_EQ(outputs_.Add(File("run3.log")).code(), Code::kInvalid);
}

TEST_F(OutputsTest, RefuseWhatCannotBeCut) {
  ASSERT_EQ(mkfifo(File("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("nothing", File("dangling"));
  for (const std::string& path :
       {File("pipe"), folder_, File("dangling"), File("no/such/folder"), File("\xff"), std::string()})
    EXPECT_EQ(outputs_.Add(path).code(), Code::kInvalid) << path;
  EXPECT_EQ(outputs_.Measure(), "");
}

TEST_F(OutputsTest, ThatCannotBeReadAreNotMeasured) {
  ASSERT_TRUE(outputs_.Add(File("a")).ok());
  ASSERT_EQ(mkfifo(File("a").c_str(), 0600), 0);
  EXPECT_TRUE(Lengths().empty());
}

TEST_F(OutputsTest, WhatNoneCanHaveMeasuredIsDamage) {
  ASSERT_TRUE(outputs_.Add(File("a")).ok());
  const std::string bytes = outputs_.Measure();
  for (size_t n = 1; n < bytes.size(); ++n)
    EXPECT_EQ(DecodeOutputs(std::string_view(bytes).substr(0, n)).status().code(), Code::kDamage) << n;
}

}  // namespace
}  // namespace cairn
