#include "runtime/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using ::testing::HasSubstr;

// A parsed line of plugstack.conf, with the arguments that it points into.
class Line {
 public:
  explicit Line(std::vector<std::string> arguments, const char* partition = nullptr)
      : arguments_(std::move(arguments)) {
    for (std::string& argument : arguments_) pointers_.push_back(argument.data());
    cairn_site_parse(&site_, static_cast<int>(pointers_.size()), pointers_.data(), partition);
  }
  const cairn_site* operator->() const { return &site_; }

 private:
  std::vector<std::string> arguments_;
  std::vector<char*> pointers_;
  cairn_site site_;
};

TEST(Site, WithoutArgumentsLeavesAllAsItWasInstalled) {
  Line line({});
  EXPECT_STREQ(line->fault, "");
  EXPECT_EQ(line->bin, nullptr);
  EXPECT_EQ(line->libdir, nullptr);
  EXPECT_EQ(line->epilog, 1);
  EXPECT_EQ(line->epilog_drain_ns, 0);
  EXPECT_EQ(line->off_file, nullptr);
  EXPECT_EQ(line->defaults[CAIRN_SETTING_checkpoint], nullptr);
}

TEST(Site, ReadsEveryArgument) {
  Line line({"bin=/b/cairn", "libdir=/l", "dirs=/scratch:/work", "off_file=/etc/off", "epilog=off",
             "ports=5000-5999", "interface=ib0", "max_lives_limit=9", "max_drain=500MB/s", "max_local=64GiB",
             "keep=last=4", "checkpoint", "max_lives=7"});
  EXPECT_STREQ(line->fault, "");
  EXPECT_STREQ(line->bin, "/b/cairn");
  EXPECT_STREQ(line->libdir, "/l");
  EXPECT_STREQ(line->off_file, "/etc/off");
  EXPECT_EQ(line->epilog, 0);
  EXPECT_STREQ(line->own[CAIRN_SITE_DIRS], "/scratch:/work");
  EXPECT_STREQ(line->own[CAIRN_SITE_PORTS], "5000-5999");
  EXPECT_STREQ(line->own[CAIRN_SITE_INTERFACE], "ib0");
  EXPECT_STREQ(line->own[CAIRN_SITE_MAX_LIVES_LIMIT], "9");
  EXPECT_STREQ(line->own[CAIRN_SITE_MAX_DRAIN], "500MB/s");
  EXPECT_STREQ(line->own[CAIRN_SITE_MAX_LOCAL], "64GiB");
  EXPECT_STREQ(line->defaults[CAIRN_SETTING_keep], "last=4");
  EXPECT_STREQ(line->defaults[CAIRN_SETTING_checkpoint], "");
  EXPECT_STREQ(line->defaults[CAIRN_SETTING_max_lives], "7");
}

TEST(Site, DrainsInTheEpilogOnlyWhereItIsAskedToAndThereIsAnEpilog) {
  EXPECT_EQ(Line({"epilog_drain=90s"})->epilog_drain_ns, 90'000'000'000);
  EXPECT_EQ(Line({"epilog_drain=90s", "epilog=on"})->epilog_drain_ns, 90'000'000'000);
  EXPECT_EQ(Line({"epilog_drain=90s", "epilog=off"})->epilog_drain_ns, 0);
}

TEST(Site, LetsThePartitionsArgumentsStandAboveThoseOfAll) {
  const std::vector<std::string> arguments = {"partition:gpu:keep=last=9",     "keep=last=4",
                                              "partition:cpu:keep=last=1",     "max_drain=1GB/s",
                                              "partition:gpu:max_drain=2GB/s", "partition:gpu:checkpoint",
                                              "partition:gpu:dirs=/nvme"};
  Line gpu(arguments, "gpu");
  EXPECT_STREQ(gpu->fault, "");
  EXPECT_STREQ(gpu->defaults[CAIRN_SETTING_keep], "last=9");
  EXPECT_STREQ(gpu->defaults[CAIRN_SETTING_checkpoint], "");
  EXPECT_STREQ(gpu->own[CAIRN_SITE_MAX_DRAIN], "2GB/s");
  EXPECT_STREQ(gpu->own[CAIRN_SITE_DIRS], "/nvme");
  for (const char* other : {"gpux", "gp", "gpu,cpu", static_cast<const char*>(nullptr)}) {
    Line line(arguments, other);
    EXPECT_STREQ(line->fault, "");
    EXPECT_STREQ(line->defaults[CAIRN_SETTING_keep], "last=4");
    EXPECT_EQ(line->defaults[CAIRN_SETTING_checkpoint], nullptr);
    EXPECT_STREQ(line->own[CAIRN_SITE_MAX_DRAIN], "1GB/s");
    EXPECT_EQ(line->own[CAIRN_SITE_DIRS], nullptr);
  }
}

TEST(Site, CountsTheLastOfTwo) {
  EXPECT_STREQ(Line({"keep=last=4", "keep=last=5"})->defaults[CAIRN_SETTING_keep], "last=5");
  EXPECT_STREQ(
      Line({"partition:a:max_local=1GB", "partition:a:max_local=2GB"}, "a")->own[CAIRN_SITE_MAX_LOCAL],
      "2GB");
}

TEST(Site, KnowsTheLocalDirectoriesOfAllPartitions) {
  Line line({"local=/scratch", "partition:gpu:local=/nvme", "partition:tiny:local=none"});
  int at = 0;
  EXPECT_STREQ(cairn_site_next_local(line.operator->(), &at), "/scratch");
  EXPECT_STREQ(cairn_site_next_local(line.operator->(), &at), "/nvme");
  EXPECT_EQ(cairn_site_next_local(line.operator->(), &at), nullptr);
}

TEST(Site, TakesBucketsAmongTheDirectories) {
  for (const char* dirs : {"dirs=s3://lab", "dirs=/scratch:s3://lab/x", "dirs=s3://lab/x:/scratch:s3://b/y"})
    EXPECT_STREQ(Line({dirs})->fault, "") << dirs;
}

TEST(Site, NamesAFaultyArgument) {
  for (const char* argument : {"bin=cairn",
                               "libdir=/a:/b",
                               "libdir=lib",
                               "dirs=",
                               "dirs=/a:b",
                               "dirs=/a:",
                               "dirs=s3://",
                               "dirs=s3:/lab:/a",
                               "dirs=s3://:/a",
                               "dirs=/a:gs://lab",
                               "off_file=off",
                               "epilog=yes",
                               "epilog_drain=0s",
                               "epilog_drain=2h",
                               "epilog_drain=on",
                               "partition:a:epilog_drain=60s",
                               "epilog",
                               "ports=5000",
                               "ports=0-9",
                               "ports=9-5",
                               "ports=1-65536",
                               "ports=1-2x",
                               "interface=",
                               "max_lives_limit=0",
                               "checkpoint=10x",
                               "keep=2",
                               "dir=",
                               "dris=/scratch",
                               "binx=/a",
                               "max_drain=500MB",
                               "max_drain=",
                               "max_local=64",
                               "partition:",
                               "partition:a",
                               "partition:a:",
                               "partition::keep=last=2",
                               "partition=a",
                               "partition:a:keep=2",
                               "partition:a:bin=/b",
                               "partition:a:epilog=on",
                               "partition:a:partition:b:keep=last=2",
                               ""}) {
    Line line({argument, "epilog=off"});
    EXPECT_THAT(line->fault, HasSubstr(argument)) << argument;
    EXPECT_STRNE(line->fault, "") << argument;
  }
}

}  // namespace
