// `cairn import` and `cairn fork`: the runs that they make are runs as any other.
#include "runtime/interop/new_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "runtime/catalog/beat.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/epoch.h"
#include "runtime/catalog/verify.h"
#include "runtime/formats/names.h"
#include "runtime/interop/checkpoint_source.h"
#include "runtime/interop/import.h"
#include "tests/runtime/command/program.h"
#include "tests/runtime/interop/made_run.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kGolden = CAIRN_SOURCE_DIR "/tests/runtime/interop/golden/dcp";

RunDirectory Open(const std::string& path) {
  auto dir = RunDirectory::OpenExisting(path);
  EXPECT_TRUE(dir.ok()) << dir.status().message();
  return *dir;
}

// What a first life asks before it restores.
void ExpectALifeCanGoOn(const std::string& path, const std::string& checkpoint) {
  const RunDirectory dir = Open(path);
  const auto newest = NewestEpoch(dir);
  ASSERT_TRUE(newest.ok() && *newest) << newest.status().message();
  BeatWatch watch;
  const auto beat =
      watch.Observe(ReadBeat(dir.PathOf(names::AliveFile((*newest)->epoch))), BeatWatch::Time());
  EXPECT_EQ(JudgeHolder((*newest)->holder, Identity{}, beat, HolderInSlurm::kUnknown), Verdict::kFree);
  const auto listing = ListCheckpoints(dir);
  ASSERT_TRUE(listing.ok()) << listing.status().message();
  const auto candidates = Candidates(*listing);
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_EQ(candidates[0].name, checkpoint);
  EXPECT_TRUE(LoadCheckpoint(dir, checkpoint).ok());
}

TEST(CairnImport, MakesARunOfWhatPyTorchSaved) {
  const std::string path = NewFolder() + "/run8";
  const Outcome made = RunCairn({"import", "--from", "dcp", kGolden, path, "--step", "9000"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr(path + " begins at step 9000 with 6 arrays, "));
  EXPECT_THAT(made.out, HasSubstr("left out, since they are no tensors: optim.lr, optim.name\n"));
  const auto show = RunCairn({"show", "--json", path}).Json();
  EXPECT_EQ(show["step"], 9000);
  EXPECT_EQ(show["trigger"], "import");
  ExpectALifeCanGoOn(path, show["name"]);
  EXPECT_EQ(RunCairn({"verify", path}).code, 0);
  const Outcome diff = RunCairn({"diff", path, kGolden});
  EXPECT_EQ(diff.code, 0) << diff.out << diff.err;
  EXPECT_EQ(diff.out, "6 of 6 arrays equal\n");
  const auto origin = Open(path).info().origin;
  ASSERT_TRUE(origin);
  EXPECT_EQ(*origin, (Origin{"dcp", fs::path(kGolden).lexically_normal(), "", ""}));
}

TEST(CairnImport, TakesBackWhatExportWrote) {
  const MadeRun run(AllKinds());
  const std::string folder = NewFolder();
  for (const auto& [format, name] : std::vector<std::pair<std::string, std::string>>{
           {"safetensors", "one.safetensors"}, {"hf", "hf"}, {"dcp", "dcp"}}) {
    const std::string out = folder + "/" + name, back = folder + "/back-" + format;
    ASSERT_EQ(RunCairn({"export", run.path(), "--to", format, out, "--file-limit", "200"}).code, 0);
    const Outcome made = RunCairn({"import", "--from", format, out, back});
    ASSERT_EQ(made.code, 0) << made.err;
    const Outcome diff = RunCairn({"diff", run.path(), back});
    EXPECT_EQ(diff.code, 0) << format << diff.out << diff.err;
  }
}

TEST(CairnImport, ReadsACheckpointsShardsAsPlainSafetensors) {
  const MadeRun run(AllKinds());
  const std::string copy = NewFolder() + "/shards", back = NewFolder() + "/back";
  fs::create_directory(copy);
  for (const auto& entry : fs::directory_iterator(run.path() + "/" + run.checkpoint())) {
    if (entry.path().extension() == ".safetensors") fs::copy(entry.path(), copy / entry.path().filename());
  }
  ASSERT_EQ(RunCairn({"import", "--from", "safetensors", copy, back}).code, 0);
  const auto diff = RunCairn({"diff", run.path(), back, "--json"}).Json();
  for (const auto& array : diff["arrays"]) {
    // An empty array has no shard.
    EXPECT_EQ(array["result"], array["name"] == "model.none" ? "only in A" : "equal") << array["name"];
  }
}

TEST(CairnImport, SharesTheFilesOfSafetensorsInsteadOfCopyingThem) {
  const MadeRun run(AllKinds());
  const std::string folder = NewFolder(), out = folder + "/hf", back = folder + "/back";
  ASSERT_EQ(RunCairn({"export", run.path(), "--to", "hf", out, "--file-limit", "200"}).code, 0);
  // As a cache of models has them.
  const std::string blobs = folder + "/blobs";
  fs::rename(out, blobs);
  fs::create_directory(out);
  for (const auto& entry : fs::directory_iterator(blobs)) {
    const fs::path name = entry.path().filename();
    fs::create_symlink(fs::path("../blobs") / name, fs::path(out) / name);
  }
  const auto made = RunCairn({"import", "--from", "hf", out, back, "--link", "--json"}).Json();
  EXPECT_THAT(made["sharing"].get<std::string>(), ::testing::AnyOf("reflink", "hard link"));
  if (made["sharing"] == "hard link") {
    uint64_t shared = 0;
    for (const auto& entry : fs::directory_iterator(blobs)) shared += fs::hard_link_count(entry) == 2;
    EXPECT_EQ(shared, RunCairn({"show", "--json", back}).Json()["files"].size());
  }
  EXPECT_EQ(RunCairn({"verify", back}).code, 0);
  ExpectALifeCanGoOn(back, made["checkpoint"]);
  const Outcome diff = RunCairn({"diff", run.path(), back});
  EXPECT_EQ(diff.code, 0) << diff.out << diff.err;
  fs::remove_all(out);
  fs::remove_all(blobs);
  EXPECT_EQ(RunCairn({"verify", back}).code, 0);
}

TEST(CairnImport, SharesNoFileOfWhichItNeedsAnotherForm) {
  const std::string path = NewFolder() + "/run";
  const Outcome dcp = RunCairn({"import", "--from", "dcp", kGolden, path, "--link"});
  EXPECT_EQ(dcp.code, 2);
  EXPECT_THAT(dcp.err, HasSubstr("--link: a dcp checkpoint holds archives of torch.save"));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(RunCairn({"import", "--from", "hf", kGolden, path, "--link", "--names", "x"}).code, 2);
}

TEST(CairnImport, LeavesNothingBehindOfWhatItRefuses) {
  const std::string folder = NewFolder(), source = NewFolder() + "/dcp";
  fs::copy(kGolden, source);
  WriteText(source + "/.metadata", std::string("\x80\x02", 2) + "cposix\nsystem\n.");
  const Outcome made = RunCairn({"import", "--from", "dcp", source, folder + "/run"});
  EXPECT_EQ(made.code, 1);
  EXPECT_EQ(made.err,
            "cairn: " + source +
                "/.metadata: its pickle names posix.system at byte 2, which no plain checkpoint needs; "
                "it is not read\n");
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(Import, CutsArraysThatAreLongerThanAFile) {
  const MadeRun run({{{"long", DType::kF32, false, {10, 3}}, "", {}},
                     {{"short", DType::kU8, false, {5}}, "", {}},
                     {{"scalar", DType::kF64, false, {}}, "", {}}});
  const auto source = CheckpointSource::Open(run.dir(), run.checkpoint());
  ASSERT_TRUE(source.ok());
  const auto arrays = ApplyNames(NameMap(), (*source)->arrays());
  const std::string path = NewFolder() + "/cut";
  const auto made =
      MakeRun({path, "cut", {"safetensors", "/x", "", ""}, 5, "0.1.0"},
              [&](const std::string& folder) -> Result<FirstCheckpoint> {
                FirstCheckpoint first;
                CAIRN_ASSIGN_OR_RETURN(first.index, ImportArrays(**source, *arrays, folder, nullptr, 50));
                EXPECT_EQ(first.index.files.size(), 3U);  // 4, 4 and 2 rows; the last with the rest
                return first;
              });
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(RunCairn({"verify", path}).code, 0);
  EXPECT_EQ(RunCairn({"diff", path, run.path()}).code, 0);
}

TEST(CairnFork, BeginsARunWithoutCopyingAndOutlivesTheOldOne) {
  const std::string folder = NewFolder(), path = folder + "/fork";
  std::string checkpoint;
  {
    const MadeRun run(AllKinds());
    const auto made = RunCairn({"fork", "--json", run.path() + "@100", path}).Json();
    EXPECT_EQ(made["step"], 100);
    EXPECT_EQ(made["from"]["checkpoint"], run.checkpoint());
    EXPECT_THAT(made["sharing"].get<std::string>(), ::testing::AnyOf("reflink", "hard link"));
    checkpoint = made["checkpoint"];
    EXPECT_EQ(RunCairn({"show", "--json", run.path()}).Json()["outputs"][0]["path"], "/scratch/loss.csv");
    EXPECT_TRUE(RunCairn({"show", "--json", path}).Json()["outputs"].empty());  // those of the old run
    EXPECT_EQ(RunCairn({"show", "--json", run.path()}).Json()["parent"], "step-000000000050.e1.0000000a");
    EXPECT_TRUE(RunCairn({"show", "--json", path}).Json()["parent"].is_null());  // it is the first of its run
    const auto origin = Open(path).info().origin;
    ASSERT_TRUE(origin);
    EXPECT_EQ(*origin, (Origin{"cairn", run.path(), run.dir().info().id, run.checkpoint()}));
    EXPECT_NE(Open(path).info().id, run.dir().info().id);
    EXPECT_EQ(RunCairn({"diff", run.path(), path}).code, 0);
  }  // the old run is removed
  EXPECT_EQ(RunCairn({"verify", path}).code, 0);
  ExpectALifeCanGoOn(path, checkpoint);
  const auto ls = RunCairn({"ls", "--json", path}).Json();
  EXPECT_EQ(ls["run"]["origin"]["format"], "cairn");
  EXPECT_EQ(ls["checkpoints"][0]["label"], 7);
  EXPECT_EQ(RunCairn({"show", "--json", path}).Json()["blobs"][0]["name"], "rng");
}

TEST(CairnFork, SaysInLsAndShowFromWhereItCame) {
  const MadeRun run(AllKinds());
  const std::string path = NewFolder() + "/fork";
  ASSERT_EQ(RunCairn({"fork", run.path(), path, "--name", "tuned"}).code, 0);
  const std::string from = "forked from " + run.path() + "@" + run.checkpoint();
  EXPECT_THAT(RunCairn({"ls", path}).out, HasSubstr(path + ": run \"tuned\", 1 checkpoint, " + from + "\n"));
  EXPECT_THAT(RunCairn({"show", path}).out, HasSubstr("run         \"tuned\", " + from + "\n"));
}

TEST(CairnFork, RefusesADirectoryThatIsThere) {
  const MadeRun run(AllKinds());
  const Outcome made = RunCairn({"fork", run.path(), run.path()});
  EXPECT_EQ(made.code, 1);
  EXPECT_EQ(made.err, "cairn: " + run.path() + " is there already: name a new one\n");
}

}  // namespace
}  // namespace cairn
