#include "runtime/catalog/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A process's folder in /proc.
class ProgramTest : public ::testing::Test {
 protected:
  void Started(const std::string& exe, const std::vector<std::string>& words) {
    std::filesystem::remove(proc_ + "/exe");
    std::filesystem::create_symlink(exe, proc_ + "/exe");
    std::string line;
    for (const std::string& word : words) line += word + '\0';
    Write(proc_ + "/cmdline", line);
  }
  void SetUp() override {
    std::filesystem::create_directories(proc_ + "/cwd");
    Write(tmp_.path() + "/train", "one");
    Write(tmp_.path() + "/python3.11", "the interpreter");
  }

  TempDir tmp_;
  const std::string proc_ = tmp_.path() + "/proc";
};

TEST_F(ProgramTest, IsKnownByItsContentAndNotByItsPlaceOrAge) {
  Started(tmp_.path() + "/train", {"./train", "--lr", "", "0.1"});
  const Program first = ReadProgram(proc_);
  EXPECT_EQ(first.path, tmp_.path() + "/train");
  EXPECT_THAT(first.hash, MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(first.arguments, ElementsAre("--lr", "", "0.1"));

  Write(tmp_.path() + "/copy", "one");
  Started(tmp_.path() + "/copy", {"copy"});
  EXPECT_EQ(ReadProgram(proc_).hash, first.hash);
  EXPECT_THAT(ReadProgram(proc_).arguments, IsEmpty());
  Write(tmp_.path() + "/copy", "two");
  EXPECT_NE(ReadProgram(proc_).hash, first.hash);
  // What lies behind the first MiB is told by the size alone.
  Write(tmp_.path() + "/copy", std::string(2 << 20, 'x'));
  const std::string large = ReadProgram(proc_).hash;
  Write(tmp_.path() + "/copy", std::string((2 << 20) + 1, 'x'));
  EXPECT_NE(ReadProgram(proc_).hash, large);
}

TEST_F(ProgramTest, OfAPythonIsItsScript) {
  Write(proc_ + "/cwd/train.py", "print(1)");
  Started(tmp_.path() + "/python3.11", {"python3", "-u", "train.py", "--lr", "0.1"});
  const Program script = ReadProgram(proc_);
  EXPECT_EQ(script.path, "train.py");
  EXPECT_THAT(script.arguments, ElementsAre("--lr", "0.1"));
  Write(proc_ + "/cwd/train.py", "print(2)");
  EXPECT_NE(ReadProgram(proc_).hash, script.hash);

  Started(tmp_.path() + "/python3.11", {"python3", "-m", "train"});
  EXPECT_EQ(ReadProgram(proc_).path, tmp_.path() + "/python3.11");
  EXPECT_THAT(ReadProgram(proc_).arguments, ElementsAre("-m", "train"));
}

TEST_F(ProgramTest, KeepsTheFirstOfVeryManyArguments) {
  const std::string word(1000, 'x');
  Started(tmp_.path() + "/train", {"train", word, word, word, word, word});
  EXPECT_THAT(ReadProgram(proc_).arguments, ElementsAre(word, word, word, word, "…"));
}

TEST_F(ProgramTest, ThatCannotBeReadIsLeftEmpty) {
  EXPECT_EQ(ReadProgram(tmp_.path() + "/nowhere"), Program{});
  Started(tmp_.path() + "/removed", {"removed"});
  EXPECT_EQ(ReadProgram(proc_).hash, "");
}

}  // namespace
}  // namespace cairn
