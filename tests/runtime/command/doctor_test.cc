// doctor: with a recorded Slurm (a scontrol of our own in PATH), without any, and on good and bad directories.
#include "runtime/command/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "runtime/command/doctor_site.h"
#include "tests/runtime/command/program.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using Json = nlohmann::json;
using Environment = std::map<std::string, std::string>;
namespace fs = std::filesystem;

constexpr const char* kConfig =
    "Configuration data as of 2026-03-01T12:00:00\n"
    "ClusterName             = alps\n"
    "JobRequeue              = 1\n"
    "KillOnBadExit           = 1\n"
    "KillWait                = 30 sec\n"
    "PreemptMode             = REQUEUE\n"
    "PreemptType             = preempt/partition_prio\n"
    "SLURM_VERSION           = 22.05.8\n";
constexpr const char* kPartitions =
    "PartitionName=low AllowGroups=ALL GraceTime=60 PreemptMode=REQUEUE PriorityTier=1 State=UP\n"
    "PartitionName=never AllowGroups=ALL GraceTime=0 PreemptMode=OFF PriorityTier=1 State=UP\n"
    "PartitionName=high AllowGroups=ALL GraceTime=0 PreemptMode=REQUEUE PriorityTier=10 State=UP\n";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

// A PATH whose scontrol says this.
Environment FakeSlurm(const std::string& config, const std::string& partitions,
                      const std::string& plugstack) {
  const std::string folder = NewFolder();
  WriteText(folder + "/config", config + "PlugStackConfig         = " + folder + "/plugstack.conf\n");
  WriteText(folder + "/partitions", partitions);
  WriteText(folder + "/plugstack.conf", plugstack);
  WriteText(folder + "/scontrol", "#!/bin/sh\ncase $2 in config) cat " + folder +
                                      "/config;; partition) cat " + folder + "/partitions;; esac\n");
  fs::permissions(folder + "/scontrol", fs::perms::owner_all);
  return {{"PATH", folder + ":/usr/bin:/bin"}};
}

Environment NoSlurm() {
  const std::string folder = NewFolder();
  fs::create_symlink("/bin/cat", folder + "/cat");
  fs::create_symlink("/usr/bin/env", folder + "/env");
  return {{"PATH", folder}};
}

Json CheckOf(const Json& document, const std::string& what) {
  for (const Json& check : document["checks"]) {
    if (check["check"] == what) return check;
  }
  return nullptr;
}

Json Doctor(const Environment& environment, const std::string& dir = NewFolder()) {
  return RunCairn({"doctor", "--json", dir}, environment).Json();
}

TEST(CairnDoctor, WorksWithoutSlurmAndSaysSo) {
  const Json document = Doctor(NoSlurm());
  EXPECT_EQ(CheckOf(document, "Slurm")["finding"], "warning");
  EXPECT_EQ(CheckOf(document, "Slurm")["text"], "there is no Slurm on this host (no scontrol in PATH)");
  EXPECT_EQ(CheckOf(document, "plugin"), nullptr);
  EXPECT_EQ(CheckOf(document, "directory")["finding"], "ok");
}

TEST(CairnDoctor, SaysThatTheControllerDoesNotAnswer) {
  const std::string folder = NewFolder();
  WriteText(folder + "/scontrol", "#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n");
  fs::permissions(folder + "/scontrol", fs::perms::owner_all);
  const Json slurm = CheckOf(Doctor({{"PATH", folder + ":/usr/bin:/bin"}}), "Slurm");
  EXPECT_EQ(slurm["finding"], "problem");
  EXPECT_THAT(slurm["text"].get<std::string>(), HasSubstr("Unable to contact slurm controller"));
}

TEST(CairnDoctor, PassesGoodSlurmSettings) {
  const Json document = Doctor(FakeSlurm(kConfig, kPartitions, ""));
  EXPECT_EQ(CheckOf(document, "Slurm")["text"], "Slurm 22.05.8, cluster alps");
  EXPECT_EQ(CheckOf(document, "preemption")["text"],
            "PreemptType=preempt/partition_prio, PreemptMode=REQUEUE");
  EXPECT_EQ(CheckOf(document, "grace time")["text"], "GraceTime: low 1 m 0 s");
  EXPECT_EQ(CheckOf(document, "KillWait")["text"], "30.0 s between SIGTERM and SIGKILL");
  for (const char* what : {"Slurm", "preemption", "grace time", "KillWait", "JobRequeue", "KillOnBadExit"}) {
    EXPECT_EQ(CheckOf(document, what)["finding"], "ok") << what;
  }
}

TEST(CairnDoctor, WarnsOfSettingsThatLoseWork) {
  std::string config = Replaced(kConfig, "= REQUEUE", "= CANCEL");
  config = Replaced(config, "JobRequeue              = 1", "JobRequeue              = 0");
  config = Replaced(config, "KillOnBadExit           = 1", "KillOnBadExit           = 0");
  config = Replaced(config, "= 30 sec", "= 5 sec");
  const Json document = Doctor(FakeSlurm(config, Replaced(kPartitions, "GraceTime=60", "GraceTime=0"), ""));
  EXPECT_EQ(CheckOf(document, "grace time")["text"], "no partition has a GraceTime; none in low");
  for (const char* what : {"preemption", "grace time", "KillWait", "JobRequeue", "KillOnBadExit"}) {
    EXPECT_EQ(CheckOf(document, what)["finding"], "warning") << what;
    EXPECT_NE(CheckOf(document, what)["remedy"], nullptr) << what;
  }
}

TEST(CairnDoctor, SaysThatNoPluginIsInTheStack) {
  const Outcome doctor =
      RunCairn({"doctor", NewFolder()}, FakeSlurm(kConfig, kPartitions, "# optional /lib/spank_cairn.so\n"));
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("problem  plugin            no line of "));
  EXPECT_THAT(doctor.out, HasSubstr("                           -> srun does not know --checkpoint: add "
                                    "`optional <libdir>/slurm/spank_cairn.so`"));
}

TEST(CairnDoctor, FollowsIncludesToThePluginAndSaysThatItsFileIsMissing) {
  const std::string folder = NewFolder();
  WriteText(folder + "/conf.d/cairn.conf",
            "required /nowhere/spank_cairn.so libdir=/opt/cairn/lib keep=last=3\n");
  const auto line = FindPluginLine(
      (WriteText(folder + "/plugstack.conf", "include conf.d/*.conf\n"), folder + "/plugstack.conf"));
  ASSERT_TRUE(line.has_value());
  EXPECT_TRUE(line->required);
  EXPECT_EQ(line->path, "/nowhere/spank_cairn.so");
  EXPECT_EQ(LibraryDirectory(line), "/opt/cairn/lib");
  const Json plugin =
      CheckOf(Doctor(FakeSlurm(kConfig, kPartitions, "include " + folder + "/conf.d/*\n")), "plugin");
  EXPECT_EQ(plugin["finding"], "problem");
  EXPECT_THAT(plugin["text"].get<std::string>(), HasSubstr("/nowhere/spank_cairn.so cannot be loaded"));
}

#ifdef CAIRN_PLUGIN
TEST(CairnDoctor, ComparesThePluginsSlurmWithTheRunningOne) {
  const std::string line = "required " CAIRN_PLUGIN "\n";
  const std::string built = CAIRN_PLUGIN_SLURM;  // "22.05", from the headers
  const Json fits = Doctor(FakeSlurm(Replaced(kConfig, "22.05.8", built + ".1"), kPartitions, line));
  EXPECT_EQ(CheckOf(fits, "plugin")["finding"], "ok");
  EXPECT_EQ(CheckOf(fits, "plugin stack")["finding"], "warning");
  const Json other =
      CheckOf(Doctor(FakeSlurm(Replaced(kConfig, "22.05.8", "19.05.1"), kPartitions, line)), "plugin");
  EXPECT_EQ(other["finding"], "problem");
  EXPECT_EQ(other["text"], CAIRN_PLUGIN " was built for Slurm " + built + ", and 19.05 is running");
}

TEST(CairnDoctor, FindsTheMistypedArgumentAndThePartitionThatIsNot) {
  const auto check = [](const std::string& arguments) {
    return CheckOf(Doctor(FakeSlurm(kConfig, kPartitions, "optional " CAIRN_PLUGIN " " + arguments + "\n")),
                   "plugin line");
  };
  EXPECT_EQ(check("keep=last=3 max_drain=2GB/s partition:low:checkpoint=auto"), nullptr);
  const Json mistyped = check("keep=last=3 max_drian=2GB/s");
  EXPECT_EQ(mistyped["finding"], "problem");
  EXPECT_THAT(mistyped["text"].get<std::string>(),
              MatchesRegex("/.*/plugstack.conf: max_drian=2GB/s: no such argument: .*"));
  const Json nowhere = check("partition:lwo:max_drain=2GB/s");
  EXPECT_EQ(nowhere["finding"], "problem");
  EXPECT_EQ(nowhere["text"], "partition:lwo:max_drain=2GB/s: Slurm has no such partition");
}
#endif

TEST(CairnDoctor, FindsThatTheShimLeavesProgramsAsTheyAre) {
  const std::string libdir = NewFolder();
  fs::create_directory(libdir + "/cairn");
  fs::create_symlink(CAIRN_SHIM, libdir + "/cairn/libcairn_preload.so");
  const std::vector<Check> checks = CheckLibraries(libdir);
  ASSERT_EQ(checks.size(), 3U);
  EXPECT_EQ(checks[0].finding, Finding::kProblem);  // no libcairn.so lies there
  EXPECT_THAT(checks[0].text, HasSubstr("cannot be loaded"));
  EXPECT_EQ(checks[1].finding, Finding::kGood) << checks[1].text;
}

TEST(CairnDoctor, SaysForWhichMpiThereIsALibrary) {
  const auto check = [](const std::string& library) {
    const std::string libdir = NewFolder();
    fs::create_directory(libdir + "/cairn");
    if (!library.empty()) fs::create_symlink(library, libdir + "/cairn/libcairn_mpi.so");
    return CheckLibraries(libdir)[2];
  };
  EXPECT_THAT(check("").text, HasSubstr("hand on over TCP what they read"));
  EXPECT_EQ(check(CAIRN_SHIM).finding, Finding::kWarning);
#ifdef CAIRN_MPI_LIBRARY
  EXPECT_THAT(check(CAIRN_MPI_LIBRARY).text,
              MatchesRegex(".*, for programs with the binary interface of (Open MPI|MPICH)"));
#endif
}

TEST(CairnDoctor, FindsThatTheShimIsMissing) {
  const std::vector<Check> checks = CheckLibraries(NewFolder());
  EXPECT_EQ(checks[1].finding, Finding::kProblem);
  EXPECT_THAT(checks[1].text, HasSubstr("is not loaded into programs"));
}

TEST(CairnDoctor, TriesWhatASaveDoesAndLeavesNothing) {
  const std::string dir = NewFolder();
  const std::vector<Check> checks = CheckDirectory(dir);
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0].finding, Finding::kGood);
  EXPECT_EQ(checks[0].text, dir + ": exclusive create, hard link, rename and fsync work");
  EXPECT_THAT(checks[1].text, MatchesRegex(".* [kMGTP]?B free.*"));
  EXPECT_TRUE(fs::is_empty(dir));
}

TEST(CairnDoctor, TriesTheParentOfADirectoryThatIsStillToBeMade) {
  const std::string dir = NewFolder();
  EXPECT_EQ(
      CheckDirectory(dir + "/run7/a")[0].text,
      dir + " (" + dir + "/run7/a would be made in it): exclusive create, hard link, rename and fsync work");
}

TEST(CairnDoctor, NamesADirectoryThatCannotBeWritten) {
  const std::vector<Check> checks = CheckDirectory("/proc");  // nobody can make folders there, root neither
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].finding, Finding::kProblem);
  EXPECT_THAT(checks[0].text, HasSubstr("make a folder in /proc"));
}

TEST(CairnDoctor, WarnsOfLogindOnlyWhereItRuns) {
  const std::string root = NewFolder();
  fs::create_directories(root + "/dev/shm");
  EXPECT_EQ(CheckMemory(root)[1].finding, Finding::kGood);
  fs::create_directories(root + "/run/systemd/seats");
  EXPECT_EQ(CheckMemory(root)[1].finding, Finding::kWarning);
  WriteText(root + "/etc/systemd/logind.conf.d/slurm.conf", "[Login]\nRemoveIPC=no\n");
  EXPECT_EQ(CheckMemory(root)[1].finding, Finding::kGood);
}

// --- in a container

// The mounts and sockets of the node (its first process) and of a program, below a root of our own.
constexpr char kNodeMounts[] =
    "27 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n31 27 0:26 / /dev/shm rw - tmpfs tmpfs rw\n";
constexpr char kNodeSockets[] =
    "Num       RefCount Protocol Flags    Type St Inode Path\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01 4711 /run/munge/munge.socket.2\n";

std::string FakeNode(const std::string& mounts, const std::string& sockets) {
  const std::string root = NewFolder();
  WriteText(root + "/proc/1/mountinfo", kNodeMounts);
  WriteText(root + "/proc/1/net/unix", kNodeSockets);
  WriteText(root + "/proc/self/mountinfo", mounts);
  WriteText(root + "/proc/self/net/unix", sockets);
  return root;
}

GetVariable HandOver(const std::string& prefix) {
  return [prefix](const std::string& name) -> std::optional<std::string> {
    if (name == "LD_PRELOAD") return "/usr/lib/libother.so:" + prefix + "/lib/cairn/libcairn_preload.so";
    if (name == "SLURM_CAIRN_LIB") return prefix + "/lib/libcairn.so";
    return std::nullopt;
  };
}

std::optional<std::string> NoVariable(const std::string&) { return std::nullopt; }

const Check* Find(const std::vector<Check>& checks, const std::string& what) {
  const auto it = std::find_if(checks.begin(), checks.end(), [&](const Check& c) { return c.what == what; });
  return it == checks.end() ? nullptr : &*it;
}

TEST(CairnDoctor, SeesThatAProgramIsInNoContainer) {
  const std::vector<Check> checks = CheckContainer(FakeNode(kNodeMounts, kNodeSockets), NoVariable);
  EXPECT_EQ(Find(checks, "container")->text, "none: the root is the node's");
  EXPECT_EQ(Find(checks, "network")->text, "the node's");
  EXPECT_EQ(Find(checks, "network")->finding, Finding::kGood);
  EXPECT_EQ(checks.size(), 2U);
}

TEST(CairnDoctor, SeesARootThatIsNotTheNodes) {
  const char* const kRoots[] = {
      "40 1 0:57 / / rw - overlay overlay rw\n", "41 1 259:1 /images/debian / rw - ext4 /dev/nvme0n1p1 rw\n",
      "42 1 0:5 / /proc rw - proc proc rw\n"};  // of chroot: nothing is mounted at /
  for (const char* mounts : kRoots)
    EXPECT_THAT(Find(CheckContainer(FakeNode(mounts, kNodeSockets), NoVariable), "container")->text,
                HasSubstr("a root of its own"));
}

TEST(CairnDoctor, NamesTheLibraryThatIsNotMountedIntoAContainer) {
  const std::string root = FakeNode(kNodeMounts, kNodeSockets);
  WriteText(root + "/opt/cairn/lib/cairn/libcairn_preload.so", "");
  const Check half = *Find(CheckContainer(root, HandOver("/opt/cairn")), "hand-over");
  EXPECT_EQ(half.finding, Finding::kProblem);
  EXPECT_EQ(half.text, "/opt/cairn/lib/libcairn.so, which srun names, is not here");
  WriteText(root + "/opt/cairn/lib/libcairn.so", "");
  EXPECT_EQ(Find(CheckContainer(root, HandOver("/opt/cairn")), "hand-over")->finding, Finding::kGood);
  EXPECT_EQ(Find(CheckContainer(root, HandOver("/elsewhere")), "hand-over")->text,
            "/elsewhere/lib/cairn/libcairn_preload.so, which srun names, is not here");
}

TEST(CairnDoctor, FindsANetworkInWhichNoRankIsReached) {
  const std::string own = Replaced(kNodeSockets, "4711", "4712");
  EXPECT_EQ(Find(CheckContainer(FakeNode(kNodeMounts, own), NoVariable), "network")->finding,
            Finding::kProblem);
}

TEST(CairnDoctor, WarnsOfASharedMemoryThatIsNotTheNodes) {
  const auto check = [](const std::string& mounts) {
    const std::string root = FakeNode(mounts, kNodeSockets);
    fs::create_directories(root + "/dev");
    fs::create_symlink("/dev/shm", root + "/dev/shm");  // a memory file system
    return CheckMemory(root)[0];
  };
  const Check own = check(Replaced(kNodeMounts, "0:26", "0:63"));
  EXPECT_EQ(own.finding, Finding::kWarning);
  EXPECT_THAT(own.text, HasSubstr("private to this job or container"));
  EXPECT_THAT(check(kNodeMounts).text, Not(HasSubstr("private")));
}

// --- --site

TEST(CairnDoctorSite, AsksEachFreeNodeOnceInThePartitionOfTheLowestTier) {
  const SiteNodes nodes = ChooseNodes(
      "n1|high|10|idle\nn1|low|1|idle\nn2|low|1|mixed\nn2|high|10|mixed\nn3|high|10|idle\nn4|low|1|down*\n"
      "n5|low|1|allocated\nnot a line\n");
  ASSERT_EQ(nodes.groups.size(), 2U);
  EXPECT_EQ(nodes.groups[0].partition, "low");
  EXPECT_EQ(nodes.groups[0].nodes, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(nodes.groups[1].partition, "high");
  EXPECT_EQ(nodes.groups[1].nodes, (std::vector<std::string>{"n3"}));
  EXPECT_EQ(nodes.left_out, (std::vector<std::string>{"n4 (down*)", "n5 (allocated)"}));
}

TEST(CairnDoctorSite, SortsTheNodesWordsByTask) {
  const std::vector<NodeAnswer> answers = ParseAnswers(
      " 1: n2\n10: n3\n 1: {\"checks\": [], \"facts\":\n10: sh: 1: /opt/cairn/bin/cairn: not found\n"
      " 1:   {\"version\": \"1: 2\"}}\n 4: n9\nsrun: error: something\n");
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].node, "n2");
  ASSERT_TRUE(answers[0].diagnosis.has_value());
  EXPECT_EQ(answers[0].diagnosis->facts, (std::map<std::string, std::string>{{"version", "1: 2"}}));
  EXPECT_EQ(answers[1].node, "n9");
  EXPECT_EQ(answers[1].text, "nothing");
  EXPECT_FALSE(answers[2].diagnosis.has_value());
  EXPECT_EQ(answers[2].text, "sh: 1: /opt/cairn/bin/cairn: not found");
}

Diagnosis HostOf(const std::string& name, std::vector<Check> checks = {}) {
  return {name,
          {{"version", "1.0"},
           {"program", "/opt/cairn/bin/cairn"},
           {"libcairn", "a"},
           {"plugin", "b"},
           {"plugin_line", "optional /p.so keep=last=3"},
           {"slurm", "slurm 22.05.8"},
           {"open_files", "4096"},
           {"locked_memory", "unlimited"},
           {"shared_memory", "64.0 GB"}},
          std::move(checks)};
}

TEST(CairnDoctorSite, NamesTheHostsThatDifferTheFewestFirst) {
  Diagnosis odd = HostOf("n2"), here = HostOf("login1");
  odd.facts["plugin_line"] = "optional /p.so keep=last=2";
  odd.facts["open_files"] = "1024";
  here.facts["open_files"] = "512";
  const std::vector<Check> checks =
      Compare(here, {{"n1", HostOf("n1"), ""}, {"n2", odd, ""}, {"n3", HostOf("n3"), ""}});
  ASSERT_EQ(checks.size(), 9U);
  EXPECT_EQ(Find(checks, "version")->text, "1.0, everywhere");
  EXPECT_EQ(Find(checks, "version")->finding, Finding::kGood);
  EXPECT_EQ(Find(checks, "plugin_line")->finding, Finding::kProblem);
  EXPECT_EQ(Find(checks, "plugin_line")->text,
            "n2: optional /p.so keep=last=2; n1,n3,login1: optional /p.so keep=last=3");
  EXPECT_THAT(Find(checks, "plugin_line")->remedy, HasSubstr("the same line in plugstack.conf"));
  EXPECT_EQ(Find(checks, "open_files")->finding, Finding::kWarning);  // of the nodes alone
  EXPECT_EQ(Find(checks, "open_files")->text, "n2: 1024; n1,n3: 4096");
}

TEST(CairnDoctorSite, TellsOnceWhatSeveralNodesFindWrong) {
  const Check memory{"memory", Finding::kWarning, "64.0 MB left", "ask for more"};
  const Check shim{"preload", Finding::kProblem, "is not loaded", "reinstall"};
  const Check good{"directory", Finding::kGood, "works", ""};
  const std::vector<Check> checks = Compare(
      HostOf("login1"), {{"n1", HostOf("n1", {good, memory}), ""}, {"n2", HostOf("n2", {memory, shim}), ""}});
  EXPECT_EQ(Find(checks, "memory")->text, "all nodes: 64.0 MB left");
  EXPECT_EQ(Find(checks, "preload")->text, "n2: is not loaded");
  EXPECT_EQ(Find(checks, "preload")->finding, Finding::kProblem);
  EXPECT_EQ(Find(checks, "preload")->remedy, "reinstall");
  EXPECT_EQ(Find(checks, "directory"), nullptr);
}

// A Slurm of three nodes on this machine: srun runs what it is given for n1 and n2, and on n2 the program is missing; n3 is down.
TEST(CairnDoctorSite, ExaminesTheNodesBySrunAndReportsTheOneWithoutCairn) {
  const std::string folder = NewFolder();
  const auto script = [&](const std::string& name, const std::string& text) {
    WriteText(folder + "/" + name, "#!/bin/sh\n" + text);
    fs::permissions(folder + "/" + name, fs::perms::owner_all);
  };
  WriteText(folder + "/plugstack.conf", "");
  script("scontrol", "case $2 in config) echo 'PlugStackConfig = " + folder + "/plugstack.conf';; esac\n");
  script("sinfo",
         "echo \"$*\" >" + folder + "/asked; printf 'n1|low|1|idle\\nn2|low|1|idle\\nn3|low|1|down\\n'\n");
  script("srun", "echo \"$CAIRN_CHECKPOINT $*\" >" + folder +
                     "/ran\nwhile [ \"$1\" != sh ]; do shift; done\n"
                     "SLURMD_NODENAME=n1 \"$@\" | sed 's/^/0: /'\n"
                     "SLURMD_NODENAME=n2 sh -c \"$3\" /nowhere/cairn \"$5\" | sed 's/^/1: /'\n");
  const Outcome doctor = RunCairn({"doctor", "--site", "--partition", "low", "--json", folder},
                                  {{"PATH", folder + ":/usr/bin:/bin"}});
  EXPECT_EQ(doctor.code, 1);
  std::vector<std::string> nodes;
  const Json document = doctor.Json();
  for (const Json& check : document["checks"]) {
    if (check["check"] == "nodes") nodes.push_back(check["text"]);
  }
  ASSERT_EQ(nodes.size(), 3U) << doctor.out;
  EXPECT_EQ(nodes[0], "examined: n1");
  EXPECT_EQ(nodes[1], "not examined: n3 (down)");
  EXPECT_THAT(
      nodes[2],
      MatchesRegex(
          "n2 could not be examined: .*/cairn doctor --json said there: .*No such file or directory"));
  EXPECT_THAT(CheckOf(document, "program")["text"].get<std::string>(), MatchesRegex("/.*/cairn, everywhere"));
  EXPECT_THAT(CheckOf(document, "plugin")["text"].get<std::string>(), HasSubstr("none, everywhere"));
  EXPECT_THAT(ReadText(folder + "/asked"), HasSubstr("--partition=low"));
  EXPECT_THAT(
      ReadText(folder + "/ran"),
      MatchesRegex("off --partition=low --nodes=2 --ntasks=2 --ntasks-per-node=1 --nodelist=n1,n2 .*\n"));
}

TEST(CairnDoctorSite, IsNotCalledWithinAJob) {
  const Outcome doctor = RunCairn({"doctor", "--site"}, {{"SLURM_JOB_ID", "7"}});
  EXPECT_EQ(doctor.code, 2);
  EXPECT_THAT(doctor.err, HasSubstr("call it on a login node, not within a job"));
}

}  // namespace
}  // namespace cairn
