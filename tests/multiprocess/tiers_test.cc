// Snapshots that were staged by all ranks and never became durable, taken up by the next life of the job from the memory of its nodes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include "runtime/catalog/checkpoints.h"
#include "tests/multiprocess/launcher.h"

namespace cairn::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::vector<std::string> kArgs = {"--n", "10007", "--steps", "60", "--step-us", "2000"};

const std::vector<std::string> kEndless = {"--n", "10007", "--steps", "1000000", "--step-us", "2000"};

std::vector<std::string> With(std::vector<std::string> args, const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::vector<Checkpoint> Committed(const std::string& dir) {
  auto run = RunDirectory::OpenExisting(dir);
  if (!run.ok()) return {};
  auto listing = ListCheckpoints(*run);
  return listing.ok() ? listing->checkpoints : std::vector<Checkpoint>();
}

// Bytes of a file, as if the process had died at another moment or the memory had failed.
void Overwrite(const std::string& path, std::streamoff offset, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offset);
  file.put(byte);
}

class Tiers : public ::testing::Test {
 protected:
  Tiers() { fs::create_directory(local_); }

  std::map<std::string, std::string> Env(std::map<std::string, std::string> more = {}) const {
    more.emplace("CAIRN_LOCAL", local_);
    return more;
  }
  std::vector<std::string> Images(const std::string& node, const std::string& suffix) const {
    std::vector<std::string> paths;
    for (const auto& entry : fs::recursive_directory_iterator(local_)) {
      const std::string path = entry.path();
      if (entry.is_regular_file() && path.find("/100." + node + ".") != std::string::npos &&
          path.ends_with(suffix))
        paths.push_back(path);
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  static std::string Expected() {
    TempDir tmp;
    Step step({.ranks = 1, .dir = tmp.path() + "/run", .args = kArgs, .env = {{"CAIRN_ON", "preempt"}}});
    EXPECT_TRUE(step.Join()) << step.Log();
    return step.Hash();
  }

  // A life of four ranks on two nodes: a durable checkpoint, then a save for which the directory is out of reach. Once rank 0 has said
  // `until`, all are killed.
  void LoseASave(std::map<std::string, std::string> env = {},
                 const std::string& until = "no save (request)") {
    const std::string away = tmp_.path() + "/away", go = tmp_.path() + "/go";
    Step step({.ranks = 4,
               .dir = dir_,
               .args = With(kEndless, {"--save-at", "10", "35", "--wait-at", "10", "35", "--hold-at", "30",
                                       "--hold-file", go}),
               .env = Env(std::move(env))});
    ASSERT_TRUE(WaitFor([&] { return step.rank(0).Err().find("saved step") != std::string::npos; }))
        << step.Log();
    fs::rename(dir_, away);
    std::ofstream(go).put('\n');
    ASSERT_TRUE(WaitFor([&] { return step.rank(0).Err().find(until) != std::string::npos; })) << step.Log();
    step.KillAll(SIGKILL);
    ASSERT_TRUE(step.Join());
    lost_log_ = step.Log();
    fs::rename(away, dir_);
    durable_ = Committed(dir_).front().id.step;
  }

  // A life of which two saves became durable, so that all images carry the hash of their content. Once rank 0 has said `until`, all are killed,
  // and the newer save loses its manifest.
  void LoseAManifest(int ranks, std::map<std::string, std::string> env = {},
                     const std::string& until = "saved step") {
    {
      Step step({.ranks = ranks,
                 .dir = dir_,
                 .args = With(kEndless, {"--save-at", "10", "35", "--wait-at", "10", "35"}),
                 .env = Env(std::move(env))});
      ASSERT_TRUE(WaitFor([&] {
        const std::string said = step.rank(0).Err();
        const size_t first = said.find("saved step");
        return first != std::string::npos && said.find("saved step", first + 1) != std::string::npos &&
               said.find(until) != std::string::npos;
      })) << step.Log();
      step.KillAll(SIGKILL);
      ASSERT_TRUE(step.Join());
      lost_log_ = step.Log();
    }
    const std::vector<Checkpoint> all = Committed(dir_);
    for (const Checkpoint& c : all) {
      if (c.id.step > 30) fs::remove(dir_ + "/" + c.name + "/manifest.json");
    }
    fs::remove(dir_ + "/CURRENT");
    durable_ = all.back().id.step;
  }

  // In the images that the ranks of the node have of a shard, not in what they hold for others.
  void FlipAByteOf(const std::string& node, const std::string& shard) const {
    for (const std::string& image : Images(node, shard + "-model-00001-of-00001.safetensors")) {
      if (image.find("/slot") == std::string::npos) continue;
      std::ifstream in(image, std::ios::binary);
      in.seekg(5000);
      Overwrite(image, 5000, static_cast<char>(in.get() ^ 0x10));
    }
  }

  // `cairn drain` on the nodes, all at once: what each said, and its exit code.
  std::vector<std::pair<int, std::string>> Drain(const std::vector<std::string>& nodes,
                                                 const std::string& within = "20s",
                                                 const std::string& launcher = "") const {
    std::vector<std::pair<FILE*, std::string>> running;
    for (const std::string& node : nodes) {
      const std::string command = "exec env -i " + launcher + " " CAIRN_COMMAND " drain --job 100 --node " +
                                  node + " --local " + local_ + " --within " + within + " 2>&1";
      running.emplace_back(popen(command.c_str(), "r"), "");
    }
    std::vector<std::pair<int, std::string>> said;
    for (auto& [pipe, text] : running) {
      char line[4096];
      while (fgets(line, sizeof line, pipe) != nullptr) text += line;
      const int status = pclose(pipe);
      said.emplace_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1, text);
    }
    return said;
  }
  // As the epilog does when all has been tried.
  void RemoveImages() const { fs::remove_all(local_ + "/cairn-" + std::to_string(geteuid())); }
  // Names in the run's directory, and below it, that only a drain under way needs.
  std::vector<std::string> Traces() const {
    std::vector<std::string> traces;
    for (const auto& entry : fs::recursive_directory_iterator(dir_)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("left-") || name.starts_with(".dra")) traces.push_back(entry.path());
    }
    return traces;
  }

  // The next life resumes at `step` (> 30 = from memory), and comes to the right end. Leaves nothing in the local tier.
  void Resume(int ranks, bool from_memory, const std::string& said) {
    Step step({.ranks = ranks, .dir = dir_, .args = kArgs, .env = Env(), .restart = 1});
    ASSERT_TRUE(step.Join()) << step.Log();
    const int64_t resumed = std::stoll("0" + step.rank(0).Line("resumed"));
    EXPECT_EQ(resumed > 30, from_memory) << lost_log_ << step.Log();
    if (!from_memory) {
      EXPECT_EQ(resumed, durable_) << step.Log();
    }
    EXPECT_THAT(step.rank(0).Err(), HasSubstr(said));
    EXPECT_EQ(step.Hash(), Expected()) << step.Log();
  }

  TempDir tmp_;
  const std::string dir_ = tmp_.path() + "/run", local_ = tmp_.path() + "/local";
  int64_t durable_ = 0;
  std::string lost_log_;
};

TEST_F(Tiers, ASaveThatNeverBecameDurableIsRescuedFromTheMemoryOfTheNodes) {
  for (const int ranks : {4, 3}) {
    LoseASave();
    ASSERT_EQ(Images("node0", ".sidecar").size(), 4u);  // two ranks, two slots each
    Resume(ranks, true, "rescued step ");
    const std::vector<Checkpoint> all = Committed(dir_);
    ASSERT_EQ(all.size(), 2u);  // the last two: the rescued one and that of the end
    EXPECT_EQ(all[1].manifest.trigger, "rescue");
    EXPECT_EQ(all[1].manifest.world_size, 4u);
    EXPECT_THAT(all[1].manifest.parent, HasSubstr("step-0000000000" + std::to_string(durable_)));
    EXPECT_FALSE(all[0].orphan || all[1].orphan);
    EXPECT_TRUE(Images("node0", "").empty());
    EXPECT_TRUE(Images("node1", "").empty());
    fs::remove_all(dir_);
    fs::remove(tmp_.path() + "/go");
  }
}

// The memory of the first rank of each node holds the files of both of its ranks.
TEST_F(Tiers, FilesOfANodeThatNeverBecameDurableAreRescuedIfAllOfItsRanksHadStagedIntoThem) {
  enum class Other { kWhole, kNotStaged, kInAnotherSlot };  // what node1's other rank has
  for (const Other other : {Other::kWhole, Other::kNotStaged, Other::kInAnotherSlot}) {
    LoseASave({{"CAIRN_FILES", "per-node"}});
    EXPECT_EQ(Images("node1", ".safetensors").size(), 2u);  // two slots
    for (const std::string& sidecar : Images("node1", "slot0.sidecar")) {
      const fs::path folder = fs::path(sidecar).parent_path();
      if (fs::exists(folder / "slot0.shard-00002-model-00001-of-00001.safetensors")) continue;
      if (other == Other::kNotStaged) {
        for (const char* slot : {"slot0.sidecar", "slot1.sidecar"}) Overwrite(folder / slot, 96, 1);
      } else if (other == Other::kInAnotherSlot) {
        for (const std::string what : {".sidecar", ".record"}) {
          fs::rename(folder / ("slot0" + what), folder / "aside");
          fs::rename(folder / ("slot1" + what), folder / ("slot0" + what));
          fs::rename(folder / "aside", folder / ("slot1" + what));
        }
      }
    }
    Resume(3, other == Other::kWhole,
           other == Other::kWhole           ? "rescued step "
           : other == Other::kInAnotherSlot ? "that it writes files with"
                                            : "resumed at step ");
    EXPECT_TRUE(Images("node1", "").empty());
    fs::remove_all(dir_);
    fs::remove(tmp_.path() + "/go");
  }
}

TEST_F(Tiers, WhatIsNotWholeOnAllRanksIsNotTakenAndTheDurableCheckpointIs) {
  const auto spoil = [&](const std::string& how) {
    for (const std::string& sidecar : Images("node1", ".sidecar")) {
      const std::string record = sidecar.substr(0, sidecar.rfind('.')) + ".record";
      if (how == "filling") Overwrite(sidecar, 96, 1);
      if (how == "torn record") fs::resize_file(record, fs::file_size(record) - 1);
      if (how == "no image")
        fs::remove(sidecar.substr(0, sidecar.rfind('.')) + ".shard-00003-model-00001-of-00001.safetensors");
    }
  };
  for (const std::string how : {"filling", "torn record", "no image", "the second node is not there"}) {
    SCOPED_TRACE(how);
    LoseASave();
    spoil(how);
    const bool found = how == "no image";  // its sidecar and record are whole
    Resume(
        how == "the second node is not there" ? 2 : 4, false,
        found ? "lay staged in the memory of the nodes, but is damaged and passed over" : "resumed at step ");
    EXPECT_TRUE(Images("node0", "").empty());
    fs::remove_all(dir_);
    fs::remove_all(local_ + "/cairn-" + std::to_string(geteuid()));
    fs::remove(tmp_.path() + "/go");
  }
}

TEST_F(Tiers, AFlippedByteOfAnImageWithAHashIsFoundAndTheOlderCheckpointUsed) {
  for (const bool flip : {true, false}) {
    LoseAManifest(2);
    if (flip) FlipAByteOf("node0", "shard-00002");
    Resume(2, !flip, flip ? "their checksum differs" : "rescued step ");
    for (const Checkpoint& c : Committed(dir_)) EXPECT_EQ(c.struck, "");
    fs::remove_all(dir_);
  }
}

TEST_F(Tiers, AFlippedByteOfAnImageWithAHashIsFoundAndThePartnersCopyUsed) {
  LoseAManifest(4, {{"CAIRN_PARTNER", "yes"}, {"CAIRN_LOG", "debug"}}, "the partners hold step 3");
  FlipAByteOf("node1", "shard-00003");
  Resume(4, true, "their checksum differs; the copy on node0 is taken instead");
}

TEST_F(Tiers, ALifeThatDiesBeforeItHasRescuedLeavesItToTheNext) {
  LoseASave();
  {
    Step step({.ranks = 4,
               .dir = dir_,
               .args = With(kArgs, {"--restore-file", tmp_.path() + "/never"}),
               .env = Env(),
               .restart = 1});
    ASSERT_TRUE(WaitFor([&] { return step.rank(3).Line("open") == "0 "; })) << step.Log();
    step.KillAll(SIGKILL);
    ASSERT_TRUE(step.Join());
  }
  Step step({.ranks = 3, .dir = dir_, .args = kArgs, .env = Env(), .restart = 2});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_THAT(step.rank(0).Err(), HasSubstr("rescued step "));
  EXPECT_EQ(step.Hash(), Expected()) << step.Log();
}

TEST_F(Tiers, RanksThatComeToTheirEndLeaveASaveThatIsNowhereElse) {
  const std::string away = tmp_.path() + "/away", go = tmp_.path() + "/go";
  {
    Step step({.ranks = 4, .dir = dir_, .args = With(kArgs, {"--wait-file", go}), .env = Env()});
    ASSERT_TRUE(WaitFor([&] { return !step.rank(3).Line("resumed").empty(); })) << step.Log();
    fs::rename(dir_, away);
    std::ofstream(go).put('\n');
    ASSERT_TRUE(step.Join()) << step.Log();
    EXPECT_THAT(step.rank(0).Err(), HasSubstr("no save (end)"));
  }
  fs::rename(away, dir_);
  Step step({.ranks = 3, .dir = dir_, .args = kArgs, .env = Env(), .restart = 1});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_THAT(step.rank(0).Line("resumed"), StartsWith("60 0"));
  EXPECT_EQ(step.Hash(), Expected());
  EXPECT_TRUE(Images("node0", "").empty());
}

TEST_F(Tiers, ANodeThatIsLostIsReplacedByTheCopiesThatItsPartnerHolds) {
  for (const bool lost_both : {false, true}) {
    LoseASave({{"CAIRN_PARTNER", "yes"}, {"CAIRN_LOG", "debug"}}, "the partners hold step 3");
    ASSERT_EQ(Images("node0", ".sidecar").size(), 6u);  // two ranks with two slots and one copy each
    for (const std::string& path : Images("node1", "")) fs::remove(path);
    if (lost_both) {
      for (const std::string& path : Images("node0", ".sidecar")) {
        if (path.find("/partner3.") != std::string::npos) fs::remove(path);
      }
    }
    Resume(2, !lost_both, lost_both ? "resumed at step " : "rescued step ");
    fs::remove_all(dir_);
    fs::remove_all(local_ + "/cairn-" + std::to_string(geteuid()));
    fs::remove(tmp_.path() + "/go");
  }
}

// The images of a save that did not become durable have no checksums: what is found is that one is missing.
TEST_F(Tiers, AnImageThatIsNotThereIsReplacedByThePartnersCopy) {
  LoseASave({{"CAIRN_PARTNER", "yes"}, {"CAIRN_LOG", "debug"}}, "the partners hold step 3");
  for (const std::string& path : Images("node1", ".shard-00003-model-00001-of-00001.safetensors")) {
    if (path.find("/slot") != std::string::npos) fs::remove(path);
  }
  Resume(4, true, "; the copy on node0 is taken instead");
}

// The first two ranks' part is in the memory of one node alone, the others' in the files alone. Where it is the second node's memory, ranks
// that want nothing of it must read it, for those of the first.
TEST_F(Tiers, ADurableCheckpointIsReadFromTheMemoryOfTheNodesAndTheRestFromItsFiles) {
  const std::vector<std::pair<int, std::string>> cases = {{4, "node0"}, {3, "node0"}, {4, "node1"}};
  for (const auto& [ranks, holder] : cases) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks, " + holder);
    {
      Step step({.ranks = 4, .dir = dir_, .args = With(kEndless, {"--save-at", "10"}), .env = Env()});
      ASSERT_TRUE(WaitFor([&] { return step.rank(0).Err().find("saved step") != std::string::npos; }))
          << step.Log();
      step.KillAll(SIGKILL);
      ASSERT_TRUE(step.Join());
    }
    const Checkpoint saved = Committed(dir_).front();
    durable_ = saved.id.step;
    for (const std::string number : {"1", "2"}) {
      const std::string path =
          dir_ + "/" + saved.name + "/shard-0000" + number + "-model-00001-of-00001.safetensors";
      const auto bytes = fs::file_size(path);
      fs::resize_file(path, 0);
      fs::resize_file(path, bytes);
    }
    for (const std::string& path : Images("node1", "")) fs::remove(path);
    for (const std::string& sidecar : Images("node0", "slot0.sidecar")) {
      const fs::path folder = fs::path(sidecar).parent_path();
      std::string name = folder.filename();
      fs::rename(folder, folder.parent_path() / name.replace(name.find("node0"), 5, holder));
    }
    Resume(ranks, false, "in the memory of the nodes) for ");
    fs::remove_all(dir_);
    fs::remove_all(local_ + "/cairn-" + std::to_string(geteuid()));
  }
}

TEST_F(Tiers, ASaveThatNeverBecameDurableIsDrainedByItsNodesAloneAndTheNextLifeResumesFromItsFiles) {
  for (const auto& env : std::vector<std::map<std::string, std::string>>{{}, {{"CAIRN_FILES", "per-node"}}}) {
    LoseASave(env);
    for (const auto& [code, said] : Drain({"node0", "node1"})) {
      EXPECT_EQ(code, 0) << said;
      EXPECT_THAT(said, HasSubstr("is durable: step-"));
    }
    RemoveImages();
    const std::vector<Checkpoint> all = Committed(dir_);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].manifest.trigger, "epilog");
    EXPECT_GT(all[0].id.step, 30);
    EXPECT_EQ(all[0].manifest.world_size, 4u);
    EXPECT_THAT(Traces(), ::testing::IsEmpty());
    Resume(3, true, "resumed at step " + std::to_string(all[0].id.step));
    fs::remove_all(dir_);
    fs::remove(tmp_.path() + "/go");
  }
}

// One after the other, twice, and with two at once on each node.
TEST_F(Tiers, NodesThatDrainMoreThanOnceMakeOneCheckpoint) {
  LoseASave();
  for (const auto& [code, said] : Drain({"node0", "node0", "node1", "node1", "node0"})) {
    EXPECT_EQ(code, 0) << said;
  }
  ASSERT_EQ(Committed(dir_).size(), 2u);
  const Checkpoint drained = Committed(dir_)[0];
  EXPECT_THAT(Drain({"node1"})[0].second, HasSubstr("nothing to make durable"));
  EXPECT_EQ(Committed(dir_)[0].manifest.time, drained.manifest.time);
  RemoveImages();
  Resume(4, true, "resumed at step ");
}

// Both nodes' drains are killed after ever longer, so at many of their steps, until they have come to their end.
TEST_F(Tiers, DrainsThatAreKilledAtAnyTimeLeaveWhatTheNextOnesComplete) {
  LoseASave();
  int killed = 0;
  for (int ms = 2; Committed(dir_).size() == 1; ms += 3 + ms / 16) {
    ASSERT_LT(ms, 60000);
    const std::string launcher = "timeout --signal=KILL " + std::to_string(ms * 1e-3);
    for (const auto& [code, said] : Drain({"node0", "node1"}, "20s", launcher)) killed += code == 0 ? 0 : 1;
    ASSERT_LE(Committed(dir_).size(), 2u);
  }
  EXPECT_GT(killed, 4);
  RemoveImages();
  const Checkpoint drained = Committed(dir_)[0];
  EXPECT_EQ(drained.manifest.trigger, "epilog");
  Resume(4, true, "resumed at step " + std::to_string(drained.id.step));
}

TEST_F(Tiers, ANodeThatDrainsAloneGivesUpInTimeAndTheNewestCheckpointStands) {
  LoseASave();
  const auto begin = std::chrono::steady_clock::now();
  const auto said = Drain({"node0"}, "1s")[0];
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(said.first, 1);
  EXPECT_THAT(said.second, HasSubstr("within the time; the newest checkpoint stands"));
  ASSERT_EQ(Committed(dir_).size(), 1u);
  RemoveImages();
  Resume(4, false, "resumed at step ");
  EXPECT_THAT(Traces(), ::testing::IsEmpty());
}

TEST_F(Tiers, NothingIsDrainedIntoADirectoryInWhichAnotherLifeHasGoneOn) {
  LoseASave();
  const std::string kept = tmp_.path() + "/kept";
  fs::copy(local_, kept, fs::copy_options::recursive);
  RemoveImages();
  Resume(4, false, "resumed at step ");
  fs::remove_all(local_);
  fs::rename(kept, local_);
  const size_t before = Committed(dir_).size();
  for (const auto& [code, said] : Drain({"node0", "node1"}, "5s")) {
    EXPECT_EQ(code, 1);
    EXPECT_THAT(said, HasSubstr("must not write to it any more"));
  }
  EXPECT_EQ(Committed(dir_).size(), before);
  EXPECT_THAT(Traces(), ::testing::IsEmpty());
}

// Of which each is one member's, or one file's.
TEST_F(Tiers, WhatIsNotWholeOnAllNodesIsNotDrained) {
  const auto first = [&](const std::string& suffix) { return Images("node1", suffix).front(); };
  const auto replace_by_link = [&](const std::string& path) {
    fs::rename(path, tmp_.path() + "/elsewhere");
    fs::create_symlink(tmp_.path() + "/elsewhere", path);
  };
  const std::vector<std::function<void()>> spoils = {
      [&] {
        for (const std::string& sidecar : Images("node1", ".sidecar")) Overwrite(sidecar, 96, 1);  // FILLING
      },
      [&] {
        for (const std::string& sidecar : Images("node1", ".sidecar")) Overwrite(sidecar, 20, 'x');
      },
      [&] { Overwrite(first("/destination"), 30, '~'); },
      [&] { Overwrite(first("/layout"), 100, '~'); },
      [&] { replace_by_link(first("/destination")); },
      [&] {
        for (const std::string& image : Images("node1", ".safetensors")) {
          replace_by_link(image);
          fs::remove(tmp_.path() + "/elsewhere");
        }
      },
      [&] {
        const fs::path folder = fs::path(first("/destination")).parent_path();
        fs::rename(folder, tmp_.path() + "/folder");
        fs::create_directory_symlink(tmp_.path() + "/folder", folder);
      },
  };
  for (size_t i = 0; i < spoils.size(); ++i) {
    SCOPED_TRACE(i);
    LoseASave();
    spoils[i]();
    for (const auto& [code, said] : Drain({"node0", "node1"}, "2s")) EXPECT_NE(code, -1) << said;
    EXPECT_EQ(Committed(dir_).size(), 1u);
    RemoveImages();
    Resume(4, false, "resumed at step ");
    fs::remove_all(dir_);
    fs::remove_all(tmp_.path() + "/folder");
    fs::remove(tmp_.path() + "/elsewhere");
    fs::remove(tmp_.path() + "/go");
  }
}

}  // namespace
}  // namespace cairn::testing
