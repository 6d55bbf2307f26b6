#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

extern "C" {
#include "plugin/site.h"
}

namespace {

using ::testing::HasSubstr;

// A parsed line of plugstack.conf, with the arguments that it points into.
class Line {
 public:
  explicit Line(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
    for (std::string& argument : arguments_) pointers_.push_back(argument.data());
    cairn_site_parse(&site_, static_cast<int>(pointers_.size()), pointers_.data());
  }
  const cairn_site* operator->() const { return &site_; }

 private:
  std::vector<std::string> arguments_;
  std::vector<char*> pointers_;
  cairn_site site_;
};

TEST(Site, TakesTheInstalledPathsWithoutArguments) {
  Line line({});
  EXPECT_STREQ(line->fault, "");
  EXPECT_STREQ(line->bin, "/opt/cairn/bin/cairn");
  EXPECT_STREQ(line->libdir, "/opt/cairn/lib");
  EXPECT_EQ(line->epilog, 1);
  EXPECT_EQ(line->off_file, nullptr);
  EXPECT_EQ(line->defaults[CAIRN_SETTING_checkpoint], nullptr);
}

TEST(Site, ReadsEveryArgument) {
  Line line({"bin=/b/cairn", "libdir=/l", "dirs=/scratch:/work", "off_file=/etc/off", "epilog=off",
             "ports=5000-5999", "interface=ib0", "max_lives_limit=9", "keep=last=4", "checkpoint",
             "max_lives=7"});
  EXPECT_STREQ(line->fault, "");
  EXPECT_STREQ(line->bin, "/b/cairn");
  EXPECT_STREQ(line->libdir, "/l");
  EXPECT_STREQ(line->off_file, "/etc/off");
  EXPECT_EQ(line->epilog, 0);
  EXPECT_STREQ(line->defaults[CAIRN_SETTING_keep], "last=4");
  EXPECT_STREQ(line->defaults[CAIRN_SETTING_checkpoint], "");
  EXPECT_STREQ(line->defaults[CAIRN_SETTING_max_lives], "7");
}

TEST(Site, NamesAFaultyArgument) {
  for (const char* argument : {"bin=cairn",      "libdir=/a:/b",
                               "libdir=lib",     "dirs=",
                               "dirs=/a:b",      "dirs=/a:",
                               "off_file=off",   "epilog=yes",
                               "epilog",         "ports=5000",
                               "ports=0-9",      "ports=9-5",
                               "ports=1-65536",  "ports=1-2x",
                               "interface=",     "max_lives_limit=0",
                               "checkpoint=10x", "keep=2",
                               "dir=",           "dris=/scratch",
                               "binx=/a",        ""}) {
    Line line({argument, "epilog=off"});
    EXPECT_THAT(line->fault, HasSubstr(argument)) << argument;
    EXPECT_STRNE(line->fault, "") << argument;
  }
}

}  // namespace
