#include "runtime/staging/memory_room.h"

#include <gtest/gtest.h>

#include <map>

namespace cairn {
namespace {

using Tree = std::map<std::string, std::string>;

MemoryRoom Room(const Tree& files, const Tree& environment = {}, int ranks_on_node = 1) {
  const auto lookup = [](const Tree& tree) {
    return [&tree](const std::string& name) -> std::optional<std::string> {
      const auto found = tree.find(name);
      if (found == tree.end()) return std::nullopt;
      return found->second;
    };
  };
  return ReadMemoryRoom(lookup(files), lookup(environment), ranks_on_node);
}

// Recorded from a node with cgroup v1 and Slurm's task/cgroup; the job is limited to 4 GiB, the step to 3 GiB.
Tree V1() {
  return {
      {"/proc/self/cgroup",
       "9:name=systemd:/system.slice/slurmd.service\n8:pids:/system.slice/slurmd.service\n"
       "4:memory:/slurm/uid_1000/job_71/step_0\n3:cpuset:/slurm/uid_1000/job_71/step_0\n0::/system.slice/"
       "slurmd.service\n"},
      {"/proc/self/mountinfo",
       "24 30 0:22 / /sys rw,nosuid - sysfs sysfs rw\n"
       "31 24 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
       "34 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
       "36 31 0:32 / /sys/fs/cgroup/memory rw,nosuid shared:15 - cgroup cgroup rw,memory\n"
       "40 31 0:36 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"},
      {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "20000000000\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
      {"/sys/fs/cgroup/memory/slurm/uid_1000/job_71/memory.usage_in_bytes", "2147483648\n"},
      {"/sys/fs/cgroup/memory/slurm/uid_1000/job_71/memory.limit_in_bytes", "4294967296\n"},
      {"/sys/fs/cgroup/memory/slurm/uid_1000/job_71/memory.stat",
       "cache 1000\ninactive_file 1\ntotal_inactive_file 0\n"},
      {"/sys/fs/cgroup/memory/slurm/uid_1000/job_71/step_0/memory.usage_in_bytes", "536870912\n"},
      {"/sys/fs/cgroup/memory/slurm/uid_1000/job_71/step_0/memory.limit_in_bytes", "3221225472\n"},
      {"/proc/meminfo",
       "MemTotal:       65536000 kB\nMemFree:         1000 kB\nMemAvailable:   32768000 kB\n"},
  };
}

TEST(MemoryRoom, IsTheLeastOfAllAncestorsInCgroupV1) {
  const MemoryRoom room = Room(V1());
  // step: 3 GiB - 0.5 GiB = 2.5 GiB; job: 4 GiB - 2 GiB = 2 GiB (other steps of it use memory too).
  EXPECT_EQ(room.bytes, uint64_t{2} << 30);
  EXPECT_EQ(room.bound_by, "memory cgroup /slurm/uid_1000/job_71 (4.3 GB, 2.1 GB used)");
}

TEST(MemoryRoom, DoesNotCountReclaimablePageCacheAsUsed) {
  Tree tree = V1();
  tree["/sys/fs/cgroup/memory/slurm/uid_1000/job_71/memory.stat"] =
      "cache 1000\ninactive_file 1\ntotal_inactive_file 2147483648\n";
  const MemoryRoom room = Room(tree);
  EXPECT_EQ(room.bytes, (uint64_t{5} << 30) / 2);
  EXPECT_EQ(room.bound_by, "memory cgroup /slurm/uid_1000/job_71/step_0 (3.2 GB, 536.9 MB used)");
}

// Recorded from a node with cgroup v2 only, inside a container that sees a part of the hierarchy as its root.
Tree V2() {
  return {
      {"/proc/self/cgroup", "0::/system.slice/slurmstepd.scope/job_9/step_0/user/task_1\n"},
      {"/proc/self/mountinfo",
       "30 24 0:26 /system.slice/slurmstepd.scope /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 "
       "rw,nsdelegate\n"},
      {"/sys/fs/cgroup/memory.current", "5000000000\n"},
      {"/sys/fs/cgroup/memory.max", "max\n"},
      {"/sys/fs/cgroup/job_9/memory.current", "6000000\n"},
      {"/sys/fs/cgroup/job_9/memory.max", "16000000\n"},
      {"/sys/fs/cgroup/job_9/memory.high", "max\n"},
      {"/sys/fs/cgroup/job_9/memory.stat",
       "anon 5000000\nfile 1000000\ninactive_anon 1\ninactive_file 1000000\n"},
      {"/sys/fs/cgroup/job_9/step_0/user/memory.current", "5000000\n"},
      {"/sys/fs/cgroup/job_9/step_0/user/memory.max", "max\n"},
      {"/sys/fs/cgroup/job_9/step_0/user/memory.high", "max\n"},
  };
}

TEST(MemoryRoom, IsTheLeastOfAllAncestorsInCgroupV2) {
  const MemoryRoom room = Room(V2());
  EXPECT_EQ(room.bytes, 11000000u);
  EXPECT_EQ(room.bound_by, "memory cgroup /job_9 (16.0 MB, 5.0 MB used)");
}

TEST(MemoryRoom, HeedsTheThrottlingLimitOfCgroupV2) {
  Tree tree = V2();
  tree["/sys/fs/cgroup/job_9/step_0/user/memory.high"] = "7000000\n";
  EXPECT_EQ(Room(tree).bytes, 2000000u);
}

TEST(MemoryRoom, IsNoneWhenACgroupIsOverItsLimit) {
  Tree tree = V2();
  tree["/sys/fs/cgroup/job_9/memory.current"] = "20000000\n";
  EXPECT_EQ(Room(tree).bytes, 0u);
}

TEST(MemoryRoom, HeedsSlurmsLimitPerNodeAndPerCpu) {
  const Tree files = {{"/proc/self/status", "Name:\tcat\nVmPeak:\t    9000 kB\nVmRSS:\t  102400 kB\n"}};
  // 1000 MiB, four ranks of 100 MiB each.
  const MemoryRoom per_node = Room(files, {{"SLURM_MEM_PER_NODE", "1000"}}, 4);
  EXPECT_EQ(per_node.bytes, uint64_t{600} << 20);
  EXPECT_EQ(per_node.bound_by, "Slurm's memory limit of this job (1.0 GB, 419.4 MB used)");
  EXPECT_EQ(Room(files, {{"SLURM_MEM_PER_CPU", "500"}, {"SLURM_CPUS_ON_NODE", "4"}}).bytes,
            uint64_t{1900} << 20);
  EXPECT_EQ(Room(files, {{"SLURM_MEM_PER_NODE", "0"}}).bytes, UINT64_MAX);  // --mem=0: the whole node
}

TEST(MemoryRoom, HeedsTheNodesOwnMemory) {
  EXPECT_EQ(Room({{"/proc/meminfo", "MemTotal:       1000 kB\nMemAvailable:   400 kB\n"}}).bytes, 400u << 10);
}

TEST(MemoryRoom, IsUnboundedWhereNothingCanBeRead) {
  EXPECT_EQ(Room({}).bytes, UINT64_MAX);
  EXPECT_EQ(Room({{"/proc/self/cgroup", "garbage\n0\n"}, {"/proc/self/mountinfo", "1 2\n - \n"}}).bytes,
            UINT64_MAX);
}

TEST(MemoryRoom, LeavesHeadRoom) {
  EXPECT_EQ(WithoutHeadRoom(uint64_t{10} << 30), (uint64_t{10} << 30) / 20 * 19);
  EXPECT_EQ(WithoutHeadRoom(100 << 20), 36u << 20);
  EXPECT_EQ(WithoutHeadRoom(10 << 20), 0u);
}

TEST(MemoryRoom, CanBeReadHere) { EXPECT_GT(ReadMemoryRoom(1).bytes, 0u); }

TEST(FormatBytes, ReadsWell) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(38200000000), "38.2 GB");
  EXPECT_EQ(FormatBytes(999990000), "1.0 GB");
}

}  // namespace
}  // namespace cairn
