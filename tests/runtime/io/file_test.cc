#include "runtime/io/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/runtime/temp_dir.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

uint32_t ModeOf(const std::string& path) {
  struct stat st {};
  EXPECT_EQ(stat(path.c_str(), &st), 0) << path;
  return st.st_mode & 07777;
}

std::string Content(const std::string& path) {
  Result<std::string> bytes = ReadAll(path, 1 << 20);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? *bytes : "";
}

TEST(PublishFile, ReplacesTheWholeContentAndLeavesNothingBeside) {
  TempDir dir;
  ASSERT_TRUE(PublishFile(dir / "f", "a long first content").ok());
  ASSERT_TRUE(PublishFile(dir / "f", "second").ok());
  EXPECT_EQ(Content(dir / "f"), "second");
  EXPECT_THAT(*ListDirectory(dir.path()), ElementsAre("f"));
}

TEST(PublishFile, TakesItsModeFromTheUmaskUnlessOneIsGiven) {
  TempDir dir;
  const mode_t before = umask(027);
  EXPECT_TRUE(PublishFile(dir / "default", "x").ok());
  EXPECT_TRUE(PublishFile(dir / "given", "x", 0664).ok());
  umask(before);
  EXPECT_EQ(ModeOf(dir / "default"), 0640u);
  EXPECT_EQ(ModeOf(dir / "given"), 0664u);
}

TEST(PublishFile, NamesTheCallAndThePathWhenTheFolderIsGone) {
  TempDir dir;
  const Status status = PublishFile(dir / "gone/f", "x");
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("open " + dir.path() + "/gone/"));
}

TEST(PublishFile, KeepsTheOldContentWhenItCannotTakeTheName) {
  TempDir dir;
  ASSERT_TRUE(MakeDirectories(dir / "f/kept").ok());
  EXPECT_FALSE(PublishFile(dir / "f", "x").ok());
  EXPECT_THAT(*ListDirectory(dir.path()), ElementsAre("f"));
}

// Runs the rest of the test as a user without rights, where the test runs as root.
class AsNobody {
 public:
  AsNobody() { changed_ = geteuid() == 0 && seteuid(65534) == 0; }
  ~AsNobody() {
    if (changed_) (void)!seteuid(0);
  }

 private:
  bool changed_ = false;
};

TEST(PublishFile, ReportsAFolderWithoutRightsAsPermission) {
  TempDir dir;
  ASSERT_TRUE(MakeDirectories(dir / "closed").ok());
  ASSERT_EQ(chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod((dir / "closed").c_str(), 0555), 0);
  const AsNobody nobody;
  const Status status = PublishFile(dir / "closed/f", "x");
  EXPECT_EQ(status.code(), Code::kPermission) << status.message();
  EXPECT_EQ(CreateExclusive(dir / "closed/f", "x").code(), Code::kPermission);
  EXPECT_EQ(MakeDirectories(dir / "closed/d").code(), Code::kPermission);
}

TEST(PublishFile, OnAFullDiskKeepsTheOldContentAndLeavesNoTemporaryFile) {
  TempDir dir;
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "no right to mount a small tmpfs: " << strerror(errno);
  }
  ASSERT_TRUE(PublishFile(dir / "f", "old").ok());
  const Status status = PublishFile(dir / "f", std::string(2 << 20, 'x'));
  EXPECT_EQ(status.code(), Code::kNoSpace) << status.message();
  EXPECT_EQ(Content(dir / "f"), "old");
  EXPECT_THAT(*ListDirectory(dir.path()), ElementsAre("f"));
  ASSERT_TRUE(PublishFile(dir / "f", std::string(900 << 10, 'x')).ok());  // the failure's space is free again
  ASSERT_EQ(umount(dir.path().c_str()), 0);
}

TEST(CreateExclusive, LetsOneContenderWinWithItsWholeContent) {
  TempDir dir;
  std::atomic<int> winners{0}, losers{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const Status status = CreateExclusive(dir / "f", std::string(100'000, static_cast<char>('a' + i)));
      (status.ok() ? winners : losers) += status.ok() || status.code() == Code::kExists;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(losers, 7);
  const std::string content = Content(dir / "f");
  EXPECT_EQ(content, std::string(100'000, content[0]));
  EXPECT_THAT(*ListDirectory(dir.path()), ElementsAre("f"));
}

TEST(CreateExclusive, IsNoWinnerEvenWhenTheContentIsEqual) {
  TempDir dir;
  ASSERT_TRUE(CreateExclusive(dir / "f", "same").ok());
  EXPECT_EQ(CreateExclusive(dir / "f", "same").code(), Code::kExists);
}

TEST(ReadAll, RefusesWhatIsTooLongOrNoFile) {
  TempDir dir;
  ASSERT_TRUE(PublishFile(dir / "f", "12345").ok());
  EXPECT_EQ(*ReadAll(dir / "f", 5), "12345");
  EXPECT_EQ(ReadAll(dir / "f", 4).status().code(), Code::kDamage);
  EXPECT_EQ(ReadAll(dir / "none", 4).status().code(), Code::kNotFound);
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(ReadAll(dir / "fifo", 4).status().code(), Code::kDamage);
}

TEST(PreadFull, SaysWhereATruncatedFileEnds) {
  TempDir dir;
  ASSERT_TRUE(PublishFile(dir / "f", "0123456789").ok());
  UniqueFd fd = *OpenFile(dir / "f", O_RDONLY);
  std::array<std::byte, 4> out{};
  ASSERT_TRUE(PreadFull(fd.get(), out, 6, "f").ok());
  EXPECT_EQ(std::to_integer<char>(out[3]), '9');
  const Status status = PreadFull(fd.get(), out, 8, "f");
  EXPECT_EQ(status.code(), Code::kDamage);
  EXPECT_THAT(status.message(), HasSubstr("f ends at byte 10, before byte 12"));
}

TEST(PwriteFull, WritesAtTheOffset) {
  TempDir dir;
  UniqueFd fd = *OpenFile(dir / "f", O_RDWR | O_CREAT);
  ASSERT_TRUE(PwriteFull(fd.get(), std::as_bytes(std::span("abc", 3)), 2, "f").ok());
  EXPECT_EQ(Content(dir / "f"), std::string("\0\0abc", 5));
  EXPECT_TRUE(std::move(fd).Close("f").ok());
}

TEST(UniqueFd, ReportsAFailedClose) {
  UniqueFd fd(dup(0));
  close(fd.get());
  const Status status = std::move(fd).Close("/some/file");
  EXPECT_THAT(status.message(), HasSubstr("close /some/file: "));
}

TEST(MakeDirectories, GivesSearchWhereThereIsRead) {
  TempDir dir;
  ASSERT_TRUE(MakeDirectories(dir / "a/b", 0640).ok());
  EXPECT_EQ(ModeOf(dir / "a"), 0750u);
  EXPECT_EQ(ModeOf(dir / "a/b"), 0750u);
  EXPECT_TRUE(MakeDirectories(dir / "a/b").ok());
  ASSERT_TRUE(PublishFile(dir / "file", "x").ok());
  EXPECT_FALSE(MakeDirectories(dir / "file").ok());
  EXPECT_FALSE(MakeDirectories(dir / "file/d").ok());
}

TEST(RenameDirectory, BelievesTheResultRatherThanTheReply) {
  TempDir dir;
  ASSERT_TRUE(MakeDirectories(dir / "from").ok());
  ASSERT_TRUE(RenameDirectory(dir / "from", dir / "to").ok());
  EXPECT_TRUE(RenameDirectory(dir / "from", dir / "to").ok());  // as if the first reply had been lost
  EXPECT_EQ(RenameDirectory(dir / "from", dir / "elsewhere").code(), Code::kNotFound);
}

TEST(RemoveTree, FollowsNoLinks) {
  TempDir dir;
  ASSERT_TRUE(MakeDirectories(dir / "tree/sub").ok());
  ASSERT_TRUE(MakeDirectories(dir / "other").ok());
  ASSERT_TRUE(PublishFile(dir / "other/kept", "x").ok());
  ASSERT_EQ(symlink((dir / "other").c_str(), (dir / "tree/sub/link").c_str()), 0);
  ASSERT_TRUE(RemoveTree(dir / "tree").ok());
  EXPECT_THAT(*ListDirectory(dir.path()), ElementsAre("other"));
  EXPECT_EQ(Content(dir / "other/kept"), "x");
  EXPECT_TRUE(RemoveTree(dir / "tree").ok());
}

}  // namespace
}  // namespace cairn
