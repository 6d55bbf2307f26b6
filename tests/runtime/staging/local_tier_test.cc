#include "runtime/staging/local_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/staging/mount_table.h"
#include "tests/runtime/staging/ranks.h"

namespace cairn {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

LocalTierOptions In(const std::string& dir) { return {.setting = dir, .job = "71", .node = "n1"}; }
std::string UserFolder(const std::string& dir) { return dir + "/cairn-" + std::to_string(geteuid()); }

mode_t ModeOf(const std::string& path) {
  struct stat st;
  EXPECT_EQ(stat(path.c_str(), &st), 0) << path;
  return st.st_mode & 07777;
}

TEST(LocalTier, IsAPrivateFolderOfPrivateFilesThatGoesWithItsOwner) {
  TempDir dir;
  std::string path;
  {
    auto tier = LocalTier::Open(In(dir.path()));
    ASSERT_TRUE(tier.ok()) << tier.status().message();
    path = tier->path();
    EXPECT_THAT(path, MatchesRegex(UserFolder(dir.path()) + "/71\\.n1\\.[0-9a-f]{8}"));
    const auto mapping = tier->Map("a", 5000, TakeAll());
    ASSERT_TRUE(mapping.ok()) << mapping.status().message();
    EXPECT_EQ(ModeOf(UserFolder(dir.path())), 0700u);
    EXPECT_EQ(ModeOf(path), 0700u);
    EXPECT_EQ(ModeOf(path + "/a"), 0600u);
    EXPECT_EQ(std::filesystem::file_size(path + "/a"), 5000u);
    EXPECT_EQ(tier->Map("a", 5000, TakeAll()).status().code(), Code::kExists);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(LocalTier, StaysWhenAForkedChildEnds) {
  TempDir dir;
  auto tier = LocalTier::Open(In(dir.path()));
  ASSERT_TRUE(tier.ok());
  const pid_t child = fork();
  if (child == 0) {
    { const LocalTier inherited = *std::move(tier); }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(std::filesystem::exists(tier->path()));
}

TEST(LocalTier, IsNotInheritedByForkedChildren) {
  auto tier = LocalTier::Open({.setting = "none"});
  ASSERT_TRUE(tier.ok());
  const auto mapping = tier->Map("a", 4096, TakeAll());
  ASSERT_TRUE(mapping.ok());
  const pid_t child = fork();
  if (child == 0) {
    // write(2) answers EFAULT for memory that is not there, where a read of ours would be a crash.
    int pipe_fds[2];
    if (pipe(pipe_fds) != 0) _exit(2);
    _exit(write(pipe_fds[1], mapping->data(), 1) < 0 && errno == EFAULT ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(LocalTier, FollowsNoLinkAndUsesNoFolderThatOthersMayEnter) {
  TempDir dir;
  std::filesystem::create_directory(dir.path() + "/elsewhere");
  std::filesystem::create_directory_symlink(dir.path() + "/elsewhere", UserFolder(dir.path()));
  EXPECT_FALSE(LocalTier::Open(In(dir.path())).ok());
  EXPECT_TRUE(std::filesystem::is_empty(dir.path() + "/elsewhere"));

  std::filesystem::remove(UserFolder(dir.path()));
  std::filesystem::create_directory(UserFolder(dir.path()));
  std::filesystem::permissions(UserFolder(dir.path()), std::filesystem::perms(0755));
  const auto open = LocalTier::Open(In(dir.path()));
  EXPECT_EQ(open.status().code(), Code::kPermission);
  EXPECT_THAT(open.status().message(), HasSubstr("is open to others: chmod 700"));
}

TEST(LocalTier, UsesNoFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make a folder of another user";
  TempDir dir;
  std::filesystem::create_directory(UserFolder(dir.path()));
  ASSERT_EQ(chown(UserFolder(dir.path()).c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod(UserFolder(dir.path()).c_str(), 0700), 0);
  const auto open = LocalTier::Open(In(dir.path()));
  EXPECT_EQ(open.status().code(), Code::kPermission);
  EXPECT_THAT(open.status().message(), HasSubstr("belongs to uid 65534"));
}

TEST(LocalTier, IsAnonymousWhereNobodyWouldCleanShm) {
  TempDir dir;
  const auto tier = LocalTier::Open({.epilog_cleans = false, .shm = dir.path()});
  ASSERT_TRUE(tier.ok());
  EXPECT_TRUE(tier->anonymous());
  EXPECT_THAT(tier->notes(), Contains(HasSubstr("no epilog of this cluster would clean")));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(LocalTier, UsesShmWhereTheEpilogCleansIt) {
  TempDir dir;
  const auto tier = LocalTier::Open({.epilog_cleans = true, .shm = dir.path()});
  ASSERT_TRUE(tier.ok());
  EXPECT_FALSE(tier->anonymous());
}

TEST(LocalTier, PromisesTheEpilogOnlyWhereItCleansForSure) {
  TempDir shm, elsewhere;
  const auto notes = [&](const std::string& setting) {
    const auto tier = LocalTier::Open({.setting = setting, .epilog_cleans = true, .shm = shm.path()});
    return tier.ok() ? tier->notes() : std::vector<std::string>{tier.status().message()};
  };
  const auto by_hand = Contains(HasSubstr("unless that is " + elsewhere.path() + ", remove " +
                                          UserFolder(elsewhere.path()) + " by hand"));
  EXPECT_THAT(notes(elsewhere.path()), by_hand);
  EXPECT_THAT(notes(shm.path()), Not(Contains(HasSubstr("by hand"))));
  EXPECT_THAT(notes("auto"), Not(Contains(HasSubstr("by hand"))));
}

TEST(LocalTier, FallsBackToAnonymousMemoryWhenShmCannotBeUsed) {
  const auto tier = LocalTier::Open({.epilog_cleans = true, .shm = "/does/not/exist"});
  ASSERT_TRUE(tier.ok());
  EXPECT_TRUE(tier->anonymous());
  EXPECT_THAT(tier->notes(), Contains(HasSubstr("/does/not/exist cannot be used")));
  EXPECT_EQ(LocalTier::Open(In("/does/not/exist")).status().code(),
            Code::kNotFound);  // a named one is an error
}

TEST(LocalTier, SaysThatADiskIsNoMemory) {
  TempDir dir;
  struct stat here, shm;
  if (stat(dir.path().c_str(), &here) != 0 || stat("/dev/shm", &shm) != 0 || here.st_dev == shm.st_dev) {
    GTEST_SKIP() << "the temporary folder is a memory file system";
  }
  const auto tier = LocalTier::Open(In(dir.path()));
  ASSERT_TRUE(tier.ok());
  EXPECT_THAT(tier->notes(), Contains(HasSubstr("is no memory file system")));
}

// A tmpfs of 8 MiB, where we may mount one.
class TinyShm {
 public:
  TinyShm() : mounted_(mount("cairn", dir_.path().c_str(), "tmpfs", 0, "size=8m") == 0) {}
  ~TinyShm() {
    if (mounted_) umount2(dir_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const std::string& path() const { return dir_.path(); }

 private:
  TempDir dir_;
  bool mounted_;
};

TEST(LocalTier, ReportsAFullMemoryFileSystemInsteadOfCrashing) {
  TinyShm shm;
  if (!shm.mounted()) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  auto tier = LocalTier::Open(In(shm.path()));
  ASSERT_TRUE(tier.ok()) << tier.status().message();
  EXPECT_THAT(tier->notes(), Contains(HasSubstr("has only 8.4 MB (a container's default)")));
  EXPECT_LE(tier->FreeBytes(), 8u << 20);
  const auto mapping = tier->Map("big", 16 << 20, TakeAll());
  EXPECT_EQ(mapping.status().code(), Code::kNoSpace);
  EXPECT_THAT(mapping.status().message(), HasSubstr(tier->path() + "/big"));
  EXPECT_TRUE(std::filesystem::is_empty(tier->path()));
  EXPECT_TRUE(tier->Map("fits", 4 << 20, TakeAll()).ok());
}

TEST(Mapping, AsksBeforeEachPieceAndKeepsNothingWhenRefused) {
  std::vector<uint64_t> asked;
  const auto refuse_second = [&](uint64_t bytes) {
    asked.push_back(bytes);
    return asked.size() < 2 ? OkStatus() : Status(Code::kOutOfMemory, "no more");
  };
  const auto mapping = Mapping::Make(-1, (64 << 20) + 5, "image", refuse_second);
  EXPECT_EQ(mapping.status().message(), "no more");
  EXPECT_EQ(asked, (std::vector<uint64_t>{64 << 20, 5}));
}

TEST(Mapping, IsMadeInAMemoryFileSystemUnderAProfilersTimer) {
  auto tier = LocalTier::Open(In("/dev/shm"));
  ASSERT_TRUE(tier.ok()) << tier.status().message();
  constexpr uint64_t kBytes = 128 << 20;
  if (tier->FreeBytes() < 2 * kBytes) GTEST_SKIP() << "/dev/shm has no room";
  struct sigaction before, ours{};
  ours.sa_handler = [](int) {};
  sigaction(SIGALRM, &ours, &before);
  const itimerval each_ms{{0, 1000}, {0, 1000}}, none{};
  setitimer(ITIMER_REAL, &each_ms, nullptr);
  const auto mapping = tier->Map("image", kBytes, TakeAll());
  setitimer(ITIMER_REAL, &none, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_TRUE(mapping.ok()) << mapping.status().message();
}

TEST(MountDevice, IsThatOfTheDeepestAndTopmostMount) {
  const char* mountinfo =
      "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "25 20 0:22 / /dev rw - devtmpfs udev rw\n"
      "26 25 0:23 / /dev/shm rw shared:3 - tmpfs tmpfs rw\n"
      "99 26 0:77 / /dev/shm rw - tmpfs tmpfs rw,size=65536k\n"
      "27 25 0:24 / /dev/shmoo rw - tmpfs tmpfs rw\n";
  EXPECT_EQ(MountDevice(mountinfo, "/dev/shm"), "0:77");
  EXPECT_EQ(MountDevice(mountinfo, "/dev/shm/a"), "0:77");
  EXPECT_EQ(MountDevice(mountinfo, "/dev/shmoo"), "0:24");
  EXPECT_EQ(MountDevice(mountinfo, "/home"), "8:1");
  EXPECT_EQ(MountDevice("", "/home"), std::nullopt);
}

}  // namespace
}  // namespace cairn
