#include "runtime/staging/ipc_removal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/runtime/staging/ranks.h"

namespace cairn {
namespace {

class IpcRemovalTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  IpcRemoval Find(uint32_t uid = 1000, const std::string& user = "mia") const {
    return FindIpcRemoval(root_, uid, user);
  }

  TempDir dir_;
  const std::string root_ = dir_.path();
};

TEST_F(IpcRemovalTest, IsOnByDefaultWhereLogindRuns) {
  EXPECT_EQ(Find(), IpcRemoval::kNoLogind);
  std::filesystem::create_directories(root_ + "/run/systemd/seats");
  EXPECT_EQ(Find(), IpcRemoval::kOn);
}

TEST_F(IpcRemovalTest, SparesSystemUsersAndThoseWhoLinger) {
  std::filesystem::create_directories(root_ + "/run/systemd/seats");
  EXPECT_EQ(Find(0), IpcRemoval::kSystemUser);
  EXPECT_EQ(Find(999), IpcRemoval::kSystemUser);
  Write("/etc/login.defs", "# system accounts\nSYS_UID_MIN 101\nSYS_UID_MAX\t\t1000\n");
  EXPECT_EQ(Find(1000), IpcRemoval::kSystemUser);
  EXPECT_EQ(Find(1001), IpcRemoval::kOn);
  Write("/var/lib/systemd/linger/mia", "");
  EXPECT_EQ(Find(1001), IpcRemoval::kLingers);
  EXPECT_EQ(Find(1001, "noa"), IpcRemoval::kOn);
  EXPECT_EQ(Find(1001, ""), IpcRemoval::kOn);
}

TEST_F(IpcRemovalTest, FollowsTheWeightOfLogindsFiles) {
  std::filesystem::create_directories(root_ + "/run/systemd/seats");
  Write("/usr/lib/systemd/logind.conf", "[Login]\nRemoveIPC=no\n");
  EXPECT_EQ(Find(), IpcRemoval::kOff);
  Write("/etc/systemd/logind.conf", "[Login]\n#RemoveIPC=no\n");  // takes the place of the vendor's
  EXPECT_EQ(Find(), IpcRemoval::kOn);
  Write("/usr/lib/systemd/logind.conf.d/50-site.conf", "[Login]\nRemoveIPC=no\n");
  EXPECT_EQ(Find(), IpcRemoval::kOff);
  Write("/etc/systemd/logind.conf.d/50-site.conf", "[Login]\nRemoveIPC=yes\n");  // takes its place
  EXPECT_EQ(Find(), IpcRemoval::kOn);
  Write("/run/systemd/logind.conf.d/60-slurm.conf", "[Login]\nRemoveIPC = no\n");  // comes later by its name
  EXPECT_EQ(Find(), IpcRemoval::kOff);
}

TEST_F(IpcRemovalTest, ReadsRemoveIpcAsSystemdDoes) {
  EXPECT_TRUE(RemovesIpc({}));
  EXPECT_TRUE(RemovesIpc({"[Login]\n#RemoveIPC=no\n"}));
  EXPECT_FALSE(RemovesIpc({"[Login]\nRemoveIPC=no\n"}));
  EXPECT_FALSE(RemovesIpc({"[Login]\nRemoveIPC=yes\n", "[Login]\nRemoveIPC = no\n"}));
}

}  // namespace
}  // namespace cairn
