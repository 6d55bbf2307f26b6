#include "runtime/staging/drain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/formats/names.h"
#include "runtime/formats/sums.h"
#include "tests/runtime/staging/ranks.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

// A staged slot of images with these sizes, filled with pseudo-random bytes.
struct Staged {
  explicit Staged(const std::vector<uint64_t>& sizes) {
    uint32_t number = 1;
    for (const uint64_t size : sizes) {
      plan.images.push_back({.number = number++, .header = std::string(8, 'h'), .size_bytes = size});
      plan.bytes += size;
    }
    const auto tier = LocalTier::Open({.setting = "none"});
    auto made = Slot::Make(*tier, plan, 0, TakeAll());
    EXPECT_TRUE(made.ok()) << made.status().message();
    slot = *std::move(made);
    Random random(5);
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (uint64_t at = 8; at + 8 <= sizes[i]; at += 8) {
        const uint64_t value = random();
        std::memcpy(slot->image(i) + at, &value, 8);
      }
    }
    slot->sidecar().Begin({.epoch = 1});
    slot->sidecar().MarkStaged();
  }
  std::string Content(size_t i) const {
    return {reinterpret_cast<const char*>(slot->image(i)), plan.images[i].size_bytes};
  }

  ImagePlan plan;
  std::unique_ptr<Slot> slot;
};

std::vector<std::string> Names(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

constexpr uint64_t kMiB = 1 << 20;

TEST(Drain, WritesEachImageAsItIsWithTheSumsOfItsBlocks) {
  for (const bool direct : {true, false}) {
    TempDir dir;
    Staged staged({9 * kMiB + 123, 4 * kMiB, 100});
    DrainProgress progress;
    const auto records =
        Drain(*staged.slot, staged.plan, {.directory = dir.path(), .direct = direct}, progress);
    ASSERT_TRUE(records.ok()) << records.status().message();
    ASSERT_EQ(records->size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const std::string content = staged.Content(i);
      ASSERT_EQ(ReadWholeFile(dir.path() + "/" + names::Shard(static_cast<uint32_t>(i + 1))), content);
      const auto sums =
          DecodeSums(ReadWholeFile(dir.path() + "/" + names::Sums(static_cast<uint32_t>(i + 1))));
      ASSERT_TRUE(sums.ok()) << sums.status().message();
      // The sums, by xxHash itself.
      size_t block = 0;
      for (size_t at = 0; at < content.size(); at += 4 * kMiB, ++block) {
        XXH128_canonical_t expected;
        XXH128_canonicalFromHash(
            &expected, XXH3_128bits(content.data() + at, std::min<size_t>(4 * kMiB, content.size() - at)));
        ASSERT_LT(block, sums->blocks.size());
        EXPECT_EQ(std::memcmp(sums->blocks[block].bytes.data(), expected.digest, 16), 0);
      }
      EXPECT_EQ(block, sums->blocks.size());
      EXPECT_EQ((*records)[i], (ShardRecord{static_cast<uint32_t>(i + 1), content.size(), sums->Root()}));
    }
    EXPECT_EQ(progress.bytes_written.load(), 13 * kMiB + 223);
    EXPECT_EQ(staged.slot->sidecar().state(), SlotState::kHashed);
  }
}

TEST(Drain, GivesItsFilesTheModeAskedFor) {
  TempDir dir;
  Staged staged({100});
  DrainProgress progress;
  ASSERT_TRUE(Drain(*staged.slot, staged.plan, {.directory = dir.path(), .mode = 0604}, progress).ok());
  for (const std::string& name : Names(dir.path())) {
    struct stat st;
    ASSERT_EQ(stat((dir.path() + "/" + name).c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0604u) << name;
  }
}

TEST(Drain, OverwritesNothingAndRemovesOnlyItsOwnFiles) {
  TempDir dir;
  Staged staged({100, 100});
  const std::string theirs = dir.path() + "/" + names::Shard(2);
  { std::ofstream(theirs) << "theirs"; }
  DrainProgress progress;
  const auto records = Drain(*staged.slot, staged.plan, {.directory = dir.path()}, progress);
  EXPECT_EQ(records.status().code(), Code::kExists);
  EXPECT_THAT(records.status().message(), HasSubstr(theirs));
  EXPECT_EQ(Names(dir.path()), std::vector<std::string>{names::Shard(2)});
  EXPECT_EQ(ReadWholeFile(theirs), "theirs");
  EXPECT_EQ(staged.slot->sidecar().state(), SlotState::kStaged);
}

TEST(Drain, LeavesNothingWhenItIsCancelled) {
  TempDir dir;
  Staged staged({100});
  DrainProgress progress;
  progress.cancel = true;
  const auto records = Drain(*staged.slot, staged.plan, {.directory = dir.path()}, progress);
  EXPECT_EQ(records.status().code(), Code::kCancelled);
  EXPECT_TRUE(Names(dir.path()).empty());
}

TEST(Drain, SaysWhereAFullFileSystemStoppedItAndLeavesNothing) {
  TempDir dir;
  if (mount("cairn", dir.path().c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "needs root, to mount a small tmpfs";
  {
    Staged staged({5 * kMiB, 5 * kMiB});
    DrainProgress progress;
    const auto records = Drain(*staged.slot, staged.plan, {.directory = dir.path()}, progress);
    EXPECT_EQ(records.status().code(), Code::kNoSpace);
    EXPECT_THAT(records.status().message(), HasSubstr("after 5242880 of 10485760 bytes"));
    EXPECT_THAT(records.status().message(), HasSubstr(names::Shard(2)));
    EXPECT_TRUE(Names(dir.path()).empty());
    // The next save, once there is room, is none the worse for it.
    Staged smaller({kMiB});
    DrainProgress again;
    EXPECT_TRUE(Drain(*smaller.slot, smaller.plan, {.directory = dir.path()}, again).ok());
  }
  umount2(dir.path().c_str(), MNT_DETACH);
}

TEST(Drain, ReportsAFolderThatItMayNotWriteTo) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  TempDir dir;
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    Staged staged({100});
    DrainProgress progress;
    const auto records = Drain(*staged.slot, staged.plan, {.directory = dir.path()}, progress);
    _exit(records.status().code() == Code::kPermission ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace cairn
