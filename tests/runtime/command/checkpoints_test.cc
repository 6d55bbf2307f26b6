// ls, show, verify, tag, pin and unpin on real directories.
#include "runtime/catalog/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "runtime/catalog/epoch.h"
#include "runtime/catalog/marks.h"
#include "runtime/formats/names.h"
#include "tests/runtime/command/program.h"
#include "tests/runtime/command/sample_run.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using Json = nlohmann::json;
namespace fs = std::filesystem;

uint64_t BytesIn(const std::string& folder, const std::string& except) {
  uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != except) bytes += entry.file_size();
  }
  return bytes;
}

void FlipByte(const std::string& path, size_t at) {
  std::string text = ReadText(path);
  text.at(at) = static_cast<char>(text.at(at) ^ 1);
  WriteText(path, text);
}

std::string ShardOf(const SampleRun& run, const std::string& checkpoint, uint32_t number) {
  return run.path() + "/" + checkpoint + "/" + names::Shard(number);
}

TEST(CairnLs, ListsCheckpointsNewestFirstInAnAlignedTable) {
  SampleRun run;
  const std::string first = run.Commit(100);
  run.Commit(1200, "preempt");
  ASSERT_TRUE(SetTag(run.dir(), "best", first).ok());
  ASSERT_TRUE(Pin(run.dir(), first).ok());
  const Outcome ls = RunCairn({"ls", run.path()});
  EXPECT_EQ(ls.code, 0) << ls.err;
  EXPECT_THAT(ls.out,
              MatchesRegex(run.path() +
                           ": run \"train\", 2 checkpoints\n"
                           "\n"
                           "STEP  LABEL  LIFE  SAVED     TRIGGER     SIZE  RANKS  FLAGS\n"
                           "1200  12000     1  just now  preempt   9.[0-9] kB      2  newest\n"
                           " 100   1000     1  just now  interval  9.[0-9] kB      2  tag best, pinned\n"));
}

TEST(CairnLs, PrintsStableJson) {
  SampleRun run;
  const std::string name = run.Commit(100);
  ASSERT_TRUE(SetTag(run.dir(), "best", name).ok());
  ASSERT_TRUE(WriteFinished(run.dir(), name).ok());
  const Json ls = RunCairn({"ls", "--json", run.path()}).Json();
  EXPECT_EQ(ls["dir"], run.path());
  EXPECT_EQ(ls["run"]["name"], "train");
  EXPECT_EQ(ls["run"]["id"], run.dir().info().id);
  EXPECT_EQ(ls["finished"], true);
  EXPECT_EQ(ls["lost"], nullptr);
  ASSERT_EQ(ls["checkpoints"].size(), 1U);
  Json checkpoint = ls["checkpoints"][0];
  EXPECT_THAT(checkpoint["time"].get<std::string>(), MatchesRegex("20[0-9-]+T[0-9:]+Z"));
  checkpoint.erase("time");
  const Json expected = {{"name", name},
                         {"step", 100},
                         {"label", 1000},
                         {"epoch", 1},
                         {"trigger", "interval"},
                         {"bytes", BytesIn(run.path() + "/" + name, "manifest.json")},
                         {"ranks", 2},
                         {"metrics", Json::object()},
                         {"newest", true},
                         {"tags", {"best"}},
                         {"pinned", false},
                         {"orphan", false},
                         {"damaged", nullptr},
                         {"unreadable", nullptr}};
  EXPECT_EQ(checkpoint, expected);
}

TEST(CairnLs, ShowsMetricsWhereTheyWereGiven) {
  SampleRun run;
  run.Commit(100, "request", {{"val_loss", {0.25, 90}}, {"acc", {NAN, 80}}});
  run.Commit(200);
  const Outcome ls = RunCairn({"ls", run.path()});
  EXPECT_THAT(ls.out, HasSubstr("  RANKS  METRICS                 FLAGS\n"));
  EXPECT_THAT(ls.out, HasSubstr("      2  acc=nan, val_loss=0.25\n"));
  EXPECT_THAT(ls.out, HasSubstr("      2                          newest\n"));
  EXPECT_THAT(RunCairn({"show", run.path() + "@100"}).out,
              HasSubstr("\nmetric      val_loss=0.25, measured after 90 steps\n"));
  const Json json = RunCairn({"ls", "--json", run.path()}).Json()["checkpoints"][1]["metrics"];
  EXPECT_EQ(json,
            Json::parse(R"({"acc": {"value": null, "step": 80}, "val_loss": {"value": 0.25, "step": 90}})"));
}

TEST(CairnPrune, KeepsTheBestByTheMetricThatItIsGiven) {
  SampleRun run;
  const std::string a = run.Commit(100, "request", {{"val_loss", {0.5, 100}}});
  const std::string b = run.Commit(200, "request", {{"val_loss", {0.25, 200}}});
  const std::string c = run.Commit(300, "request", {{"val_loss", {0.75, 300}}});
  const Json dry =
      RunCairn({"prune", run.path(), "--keep", "best=1:val_loss:min", "--dry-run", "--json"}).Json();
  EXPECT_EQ(dry["pruned"], (Json{a}));
  const Outcome refused = RunCairn({"prune", run.path(), "--keep", "best=1:val_loss"});
  EXPECT_THAT(refused.err, HasSubstr("--keep=best=1:val_loss is not accepted. Accepted: last=N, every="));
}

TEST(CairnLs, FlagsOrphansAndDamagedCheckpoints) {
  SampleRun run;
  const std::string kept = run.Commit(100), orphan = run.Commit(200);
  run.BeginLife(kept);
  const std::string bad = run.Commit(300);
  ASSERT_TRUE(MarkDamaged(run.dir(), bad, "block 0 is wrong").ok());
  const Json all = RunCairn({"ls", "--json", run.path()}).Json()["checkpoints"];
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0]["damaged"], "block 0 is wrong");
  EXPECT_EQ(all[0]["newest"], false);
  EXPECT_EQ(all[1]["orphan"], true);
  EXPECT_EQ(all[1]["name"], orphan);
  EXPECT_EQ(all[2]["newest"], true);
  const std::string text = RunCairn({"ls", run.path()}).out;
  EXPECT_THAT(text, HasSubstr("  damaged\n"));
  EXPECT_THAT(text, HasSubstr("  orphan\n"));
}

TEST(CairnLs, ShowsWhatIsKnownOfAnUnreadableManifest) {
  SampleRun run;
  const std::string name = run.Commit(100);
  WriteText(run.path() + "/" + name + "/manifest.json", "{}");
  const Outcome ls = RunCairn({"ls", run.path()});
  EXPECT_EQ(ls.code, 0);
  EXPECT_THAT(ls.out, HasSubstr(" 100      ?     1  ?      ?           ?      ?  damaged\n"));
}

TEST(CairnLs, SaysThatThereIsNoSuchDirectory) {
  const std::string missing = NewFolder() + "/nowhere";
  const Outcome ls = RunCairn({"ls", missing});
  EXPECT_EQ(ls.code, 1);
  EXPECT_EQ(ls.out, "");
  EXPECT_EQ(ls.err,
            "cairn: " + missing + " does not exist; `cairn runs` lists the directories of your runs\n");
}

TEST(CairnLs, SaysThatAFolderIsNoRun) {
  const std::string folder = NewFolder();
  const Outcome ls = RunCairn({"ls", folder, "--json"});
  EXPECT_EQ(ls.code, 1);
  EXPECT_EQ(ls.Json()["error"]["code"], "not found");
  EXPECT_EQ(
      ls.Json()["error"]["message"],
      folder +
          " is no run's directory: it holds no file RUN; `cairn runs` lists the directories of your runs");
}

TEST(CairnShow, PrintsArraysBlobsFilesAndSettings) {
  SampleRun run;
  const std::string name = run.Commit(100);
  const Outcome show = RunCairn({"show", run.path()});
  EXPECT_EQ(show.code, 0) << show.err;
  EXPECT_THAT(show.out, HasSubstr("checkpoint  " + run.path() + "/" + name + "\n"));
  EXPECT_THAT(show.out, HasSubstr("step        100, label 1000\n"));
  EXPECT_THAT(show.out, HasSubstr("parent      none: its life began fresh\n"));
  EXPECT_THAT(show.out, HasSubstr("flags       newest\n"));
  EXPECT_THAT(show.out, HasSubstr("setting     CAIRN_KEEP=last=2\n"));
  EXPECT_THAT(show.out, HasSubstr("\nARRAY  DTYPE  SHAPE   ORDER  BOXES   SIZE\n"
                                  "w      F32    [4, 8]  C          2  128 B\n"
                                  "field  F64    [3, 2]  F          1   48 B\n"));
  EXPECT_THAT(show.out, HasSubstr("\nBLOB  POLICY  RANKS  SIZE\n"
                                  "rng   reseed      2   8 B\n"));
  EXPECT_THAT(show.out, HasSubstr("\nshard-00002-model-00001-of-00001.safetensors  "));
}

TEST(CairnShow, PrintsStableJson) {
  SampleRun run;
  const std::string parent = run.Commit(100);
  run.BeginLife(parent);
  run.Commit(300);
  const Json show = RunCairn({"show", "--json", run.path() + "@300"}).Json();
  EXPECT_EQ(show["step"], 300);
  EXPECT_EQ(show["epoch"], 2);
  EXPECT_EQ(show["parent"], parent);
  EXPECT_EQ(show["dir"], run.path());
  EXPECT_EQ(show["cairn_version"], "0.1.0");
  EXPECT_EQ(show["settings"], (Json{{"CAIRN_KEEP", "last=2"}}));
  EXPECT_EQ(show["arrays"][1], (Json{{"name", "field"},
                                     {"dtype", "F64"},
                                     {"shape", {3, 2}},
                                     {"order", "F"},
                                     {"boxes", 1},
                                     {"bytes", 48}}));
  EXPECT_EQ(show["blobs"][0], (Json{{"name", "rng"}, {"policy", "reseed"}, {"ranks", 2}, {"bytes", 8}}));
  EXPECT_EQ(show["files"].size(), 2U);
  EXPECT_EQ(show["files"][0]["name"], "shard-00001-model-00001-of-00001.safetensors");
}

TEST(CairnShow, FindsACheckpointByStepTagNameAndFolder) {
  SampleRun run;
  const std::string first = run.Commit(100);
  run.Commit(200);
  ASSERT_TRUE(SetTag(run.dir(), "best", first).ok());
  for (const std::string& target : {run.path() + "@100", run.path() + "@best", run.path() + "@" + first,
                                    run.path() + "/" + first, run.path() + "/" + first + "/"}) {
    EXPECT_EQ(RunCairn({"show", "--json", target}).Json()["name"], first) << target;
  }
}

TEST(CairnShow, FindsTheBestByAMetric) {
  SampleRun run;
  run.Commit(100, "request", {{"val/loss", {0.5, 100}}, {"acc", {0.75, 100}}});
  const std::string low = run.Commit(200, "request", {{"val/loss", {0.25, 200}}, {"acc", {0.5, 200}}});
  run.Commit(300, "request", {{"val/loss", {0.25, 200}}, {"acc", {NAN, 300}}});  // not measured again
  run.Commit(400);
  EXPECT_EQ(RunCairn({"show", "--json", run.path() + "@best:val/loss:min"}).Json()["name"], low);
  EXPECT_EQ(RunCairn({"show", "--json", run.path() + "@best:acc:max"}).Json()["step"], 100);
  EXPECT_EQ(
      RunCairn({"show", run.path() + "@best:f1:max"}).err,
      "cairn: no checkpoint of " + run.path() + " has a finite metric \"f1\"; there are acc, val/loss\n");
  for (const char* measure : {"acc", "acc:most", ":min", "acc:max,last=1"})
    EXPECT_EQ(RunCairn({"show", run.path() + "@best:" + measure}).err,
              "cairn: @best:" + std::string(measure) + ": name a metric and min or max, as in " + run.path() +
                  "@best:loss:min\n");
}

TEST(CairnShow, AcceptsADirectoryWithAnAtInItsName) {
  SampleRun run;
  run.Commit(100);
  const std::string odd = run.path() + "@home";
  fs::rename(run.path(), odd);
  EXPECT_EQ(RunCairn({"show", "--json", odd}).Json()["step"], 100);
  EXPECT_EQ(RunCairn({"show", "--json", odd + "@100"}).Json()["step"], 100);
}

TEST(CairnShow, NamesTheStepsThatThereAre) {
  SampleRun run;
  run.Commit(100);
  run.Commit(200);
  const Outcome show = RunCairn({"show", run.path() + "@150"});
  EXPECT_EQ(show.code, 1);
  EXPECT_EQ(show.err, "cairn: " + run.path() + " has no checkpoint of step 150; there are 200, 100\n");
}

TEST(CairnShow, NamesTheTagsThatThereAre) {
  SampleRun run;
  ASSERT_TRUE(SetTag(run.dir(), "best", run.Commit(100)).ok());
  const Outcome show = RunCairn({"show", run.path() + "@bets"});
  EXPECT_EQ(show.code, 1);
  EXPECT_EQ(show.err, "cairn: " + run.path() +
                          " has no tag \"bets\"; there are best. Name a step (`cairn ls` shows them, with "
                          "their metrics), or set the tag: cairn tag " +
                          run.path() + "@STEP bets\n");
}

TEST(CairnShow, PrefersTheRunsOwnLineAndAsksWhichOrphanIsMeant) {
  SampleRun run;
  const std::string first = run.Commit(200);
  run.BeginLife("");
  const std::string second = run.Commit(200);
  EXPECT_EQ(RunCairn({"show", "--json", run.path() + "@200"}).Json()["name"], second);
  run.BeginLife("");
  const Outcome show = RunCairn({"show", run.path() + "@200"});
  EXPECT_EQ(show.code, 1);
  EXPECT_EQ(show.err, "cairn: step 200 of " + run.path() +
                          " has several orphans, name one as DIR@NAME: " + second + ", " + first + "\n");
}

TEST(CairnShow, SaysThatARunHoldsNoCheckpointYet) {
  SampleRun run;
  const Outcome show = RunCairn({"show", run.path()});
  EXPECT_EQ(show.code, 1);
  EXPECT_EQ(show.err, "cairn: " + run.path() + " holds no checkpoint yet\n");
}

TEST(CairnShow, NamesADamagedCheckpointAndTheRemedy) {
  SampleRun run;
  const std::string name = run.Commit(100);
  fs::resize_file(ShardOf(run, name, 2), 10);
  const Outcome show = RunCairn({"show", run.path()});
  EXPECT_EQ(show.code, 1);
  EXPECT_THAT(show.err, HasSubstr("cairn: " + name + " is damaged: "));
  EXPECT_THAT(show.err, HasSubstr("it was truncated"));
  EXPECT_THAT(show.err,
              HasSubstr("`cairn verify " + run.path() + "@" + name + "` names all that is bad in it\n"));
}

TEST(CairnVerify, PassesAGoodCheckpoint) {
  SampleRun run;
  const std::string name = run.Commit(100);
  const uint64_t bytes = fs::file_size(ShardOf(run, name, 1)) + fs::file_size(ShardOf(run, name, 2));
  const Outcome text = RunCairn({"verify", run.path()});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, MatchesRegex("good  " + name + ": [0-9.]+ kB read and compared in [0-9.]+ ms\n"));
  EXPECT_EQ(text.err, "");  // no bar where stderr is no terminal
  const Json json = RunCairn({"verify", "--json", "--threads", "2", run.path()}).Json();
  EXPECT_EQ(json["good"], true);
  EXPECT_EQ(json["checkpoint"], name);
  EXPECT_EQ(json["bytes"], bytes);
  EXPECT_EQ(json["faults"], Json::array());
}

TEST(CairnVerify, NamesTheBadBlockAndFails) {
  SampleRun run;
  const std::string name = run.Commit(100);
  const std::string shard = ShardOf(run, name, 2);
  const uint64_t bytes = fs::file_size(shard);
  FlipByte(shard, bytes - 1);
  const Outcome text = RunCairn({"verify", run.path()});
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, HasSubstr("bad   shard-00002-model-00001-of-00001.safetensors, bytes 0 to " +
                                  std::to_string(bytes - 1) +
                                  ": block 0 does not match its checksum\nBAD   " + name + ": "));
  EXPECT_THAT(text.out, HasSubstr("`cairn ls " + run.path() + "` shows what there is.\n"));
  const Outcome json = RunCairn({"verify", "--json", run.path()});
  EXPECT_EQ(json.code, 1);
  EXPECT_EQ(json.Json()["faults"], (Json{{{"file", "shard-00002-model-00001-of-00001.safetensors"},
                                          {"offset", 0},
                                          {"bytes", bytes},
                                          {"reason", "block 0 does not match its checksum"}}}));
}

TEST(CairnVerify, NamesAMissingFile) {
  SampleRun run;
  const std::string name = run.Commit(100);
  fs::remove(ShardOf(run, name, 1));
  const Outcome verify = RunCairn({"verify", run.path()});
  EXPECT_EQ(verify.code, 1);
  EXPECT_THAT(verify.out, HasSubstr("bad   shard-00001-model-00001-of-00001.safetensors: is missing\n"));
}

TEST(CairnVerify, LeavesNothingBehind) {
  SampleRun run;
  run.Commit(100);
  ASSERT_EQ(RunCairn({"verify", run.path()}).code, 0);
  EXPECT_TRUE(fs::is_empty(run.path() + "/leases"));
}

TEST(CairnVerify, RefusesAnOddNumberOfThreads) {
  EXPECT_EQ(RunCairn({"verify", "--threads", "0", "/tmp"}).code, 2);
}

TEST(CairnTag, NamesMovesAndRemoves) {
  SampleRun run;
  const std::string first = run.Commit(100), second = run.Commit(200);
  const Outcome tag = RunCairn({"tag", run.path() + "@100", "best"});
  EXPECT_EQ(tag.code, 0) << tag.err;
  EXPECT_EQ(tag.out, first + " is now " + run.path() + "@best, and is kept\n");
  EXPECT_EQ(ReadTags(run.dir())->at("best"), first);
  EXPECT_EQ(RunCairn({"tag", "--json", run.path() + "@200", "best"}).Json(),
            (Json{{"dir", run.path()}, {"tag", "best"}, {"checkpoint", second}}));
  EXPECT_EQ(ReadTags(run.dir())->at("best"), second);
  EXPECT_EQ(RunCairn({"tag", "--remove", run.path(), "best"}).code, 0);
  EXPECT_TRUE(ReadTags(run.dir())->empty());
}

TEST(CairnTag, RefusesNamesThatCouldNotBeReadBack) {
  SampleRun run;
  run.Commit(100);
  const Outcome digits = RunCairn({"tag", run.path(), "1200"});
  EXPECT_EQ(digits.code, 2);
  EXPECT_EQ(digits.err,
            "cairn: tag \"1200\" would read as a step or a checkpoint's full name; choose another\n");
  const Outcome slash = RunCairn({"tag", run.path(), "a/b"});
  EXPECT_EQ(slash.code, 2);
  EXPECT_EQ(slash.err,
            "cairn: tag \"a/b\": use 1 to 100 letters, digits and . _ + = -, not beginning with a dot\n");
}

TEST(CairnTag, DoesNotRemoveATagThatIsNotThere) {
  SampleRun run;
  const Outcome tag = RunCairn({"tag", "--remove", run.path(), "best"});
  EXPECT_EQ(tag.code, 1);
  EXPECT_EQ(tag.err,
            "cairn: " + run.path() + " has no tag \"best\"; `cairn ls` shows those that there are\n");
}

TEST(CairnPin, PinsAndUnpins) {
  SampleRun run;
  const std::string name = run.Commit(100);
  EXPECT_EQ(RunCairn({"pin", run.path() + "@100"}).out, name + " is pinned: it is never pruned\n");
  EXPECT_TRUE(ReadPins(run.dir())->contains(name));
  EXPECT_EQ(RunCairn({"unpin", "--json", run.path() + "@100"}).Json(),
            (Json{{"dir", run.path()}, {"checkpoint", name}, {"pinned", false}}));
  EXPECT_TRUE(ReadPins(run.dir())->empty());
  const Outcome again = RunCairn({"unpin", run.path() + "@100"});
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(again.err, "cairn: " + name + " of " + run.path() + " is not pinned\n");
}

TEST(Cairn, CallsAWrongCommandLineUsage) {
  EXPECT_EQ(RunCairn({}).code, 2);
  EXPECT_EQ(RunCairn({"sl"}).code, 2);
  EXPECT_EQ(RunCairn({"ls"}).code, 2);
  EXPECT_EQ(RunCairn({"ls", "a", "b"}).code, 2);
  EXPECT_EQ(RunCairn({"show", "@100"}).code, 2);
}

TEST(CairnPrune, KeepsWhatThePolicyMarksAndBranchesKeep) {
  SampleRun run;
  const std::string first = run.Commit(100), second = run.Commit(200), orphan = run.Commit(300);
  run.BeginLife(second);
  const std::string tagged = run.Commit(400), pinned = run.Commit(500), old = run.Commit(600),
                    newest = run.Commit(700);
  ASSERT_TRUE(SetTag(run.dir(), "best", tagged).ok());
  ASSERT_TRUE(Pin(run.dir(), pinned).ok());
  const Json plan = RunCairn({"prune", run.path(), "--keep", "last=1", "--dry-run", "--json"}).Json();
  EXPECT_EQ(plan["dry_run"], true);
  EXPECT_EQ(plan["pruned"], (std::vector<std::string>{first, second, old}));
  EXPECT_EQ(RunCairn({"ls", run.path(), "--json"}).Json()["checkpoints"].size(), 7U);
  const Outcome pruned = RunCairn({"prune", run.path(), "--keep", "last=1"});
  EXPECT_EQ(pruned.code, 0) << pruned.err;
  EXPECT_THAT(pruned.out, HasSubstr("pruned " + old + ", 9."));
  EXPECT_THAT(pruned.out, HasSubstr("4 kept\n"));
  for (const std::string& name : {orphan, tagged, pinned, newest})
    EXPECT_TRUE(fs::exists(run.path() + "/" + name));
  for (const std::string& name : {first, second, old}) EXPECT_FALSE(fs::exists(run.path() + "/" + name));
}

TEST(CairnPrune, TakesThePolicyThatTheRunWasSavedUnder) {
  SampleRun run;  // its manifests say last=2
  const std::string first = run.Commit(100);
  run.Commit(200);
  run.Commit(300);
  EXPECT_EQ(RunCairn({"prune", run.path(), "--json"}).Json()["pruned"], std::vector<std::string>{first});
}

TEST(CairnPrune, WaitsForALifeThatIsRestoring) {
  SampleRun run;
  run.Commit(100);
  run.Commit(200);
  ASSERT_TRUE(ClaimEpoch(run.dir(), 1, Identity{}).ok());
  const Outcome pruned = RunCairn({"prune", run.path(), "--keep", "last=1"});
  EXPECT_EQ(pruned.code, 1);
  EXPECT_THAT(pruned.err, HasSubstr("it is restoring, or was killed meanwhile"));
  EXPECT_EQ(RunCairn({"ls", run.path(), "--json"}).Json()["checkpoints"].size(), 2U);
}

TEST(CairnPrune, RefusesAPolicyThatIsNone) {
  SampleRun run;
  run.Commit(100);
  const Outcome pruned = RunCairn({"prune", run.path(), "--keep", "3"});
  EXPECT_EQ(pruned.code, 2);
  EXPECT_EQ(pruned.err,
            "cairn: --keep=3 is not accepted. Did you mean last=3? Accepted: last=N, every=DURATION, "
            "every=<n>steps and "
            "best=N:METRIC:min or :max, joined by commas, for example last=2,every=6h,best=3:val_loss:min\n");
}

}  // namespace
}  // namespace cairn
