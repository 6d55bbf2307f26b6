// runs, why, status and save: runs found by their job, and what a journal tells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>

#include "runtime/catalog/beat.h"
#include "runtime/catalog/marks.h"
#include "runtime/control/control_client.h"
#include "runtime/formats/names.h"
#include "tests/runtime/command/program.h"
#include "tests/runtime/command/sample_run.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Json = nlohmann::json;
using Environment = std::map<std::string, std::string>;

// A state folder whose registry has one line for each start.
class Registry {
 public:
  // At 2026-01-01T00:00:00Z, or so many seconds later.
  void Start(int job, int step, int restart, const std::string& dir, int later_s = 0) {
    text_ += Json{{"event", "start"}, {"job", job},      {"step", step},    {"restart", restart},
                  {"dir", dir},       {"name", "train"}, {"saved_step", 0}, {"time", 1767225600 + later_s}}
                 .dump() +
             "\n";
  }
  Environment Write() const {
    const std::string folder = NewFolder();
    WriteText(folder + "/cairn/runs.jsonl", text_ + "{\"job\": 9, \"st");  // a last line that was cut short
    return {{"XDG_STATE_HOME", folder}};
  }

 private:
  std::string text_;
};

TEST(CairnRuns, ListsEachRunOnceTheLastUsedFirst) {
  SampleRun done, open;
  ASSERT_TRUE(WriteFinished(done.dir(), done.Commit(500)).ok());
  open.Commit(120);
  const std::string gone = NewFolder() + "/gone";
  Registry registry;
  registry.Start(12, 0, 0, open.path());
  registry.Start(11, 0, 0, gone);
  registry.Start(14, 1, 0, done.path());
  registry.Start(12, 0, 3, open.path());
  const Environment environment = registry.Write();

  const Json runs = RunCairn({"runs", "--json"}, environment).Json()["runs"];
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0], (Json{{"dir", open.path()},
                           {"name", "train"},
                           {"job", 12},
                           {"step_id", 0},
                           {"restart", 3},
                           {"time", "2026-01-01T00:00:00Z"},
                           {"state", "unfinished"},
                           {"newest_step", 120},
                           {"checkpoints", 1}}));
  EXPECT_EQ(runs[1]["state"], "finished");
  EXPECT_EQ(runs[1]["newest_step"], 500);
  EXPECT_EQ(runs[2]["state"], "gone");
  EXPECT_EQ(runs[2]["newest_step"], nullptr);

  const Outcome text = RunCairn({"runs"}, environment);
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, MatchesRegex(" JOB  NAME   USED +STATE       STEP  DIRECTORY\n"
                                     "12\\.0  train  .* ago  unfinished   120  " +
                                     open.path() +
                                     "\n"
                                     "14\\.1  train  .* ago  finished     500  " +
                                     done.path() +
                                     "\n"
                                     "11\\.0  train  .* ago  gone           -  " +
                                     gone + "\n"));
}

TEST(CairnRuns, SaysThatThereAreNone) {
  const Outcome runs = RunCairn({"runs"}, {{"XDG_STATE_HOME", NewFolder()}});
  EXPECT_EQ(runs.code, 0);
  EXPECT_EQ(runs.out, "No step of yours has run with --checkpoint yet, as far as this host knows.\n");
}

class CairnRunsThat : public ::testing::Test {
 protected:
  CairnRunsThat() {
    const int day = 24 * 3600;
    registry_.Start(11, 0, 0, "/gone/a");
    registry_.Start(12, 0, 0, "/gone/b", day);
    registry_.Start(12, 1, 0, "/gone/c", day + 60);
    registry_.Start(11, 0, 1, "/gone/a", 2 * day);
    registry_.Start(12, 0, 1, "/gone/b", 3 * day);
  }
  std::string Listed(std::vector<std::string> options) {
    options.insert(options.begin(), {"runs", "--json"});
    std::string dirs;
    auto environment = registry_.Write();
    environment["TZ"] = "UTC-3";  // three hours before UTC
    const Json list = RunCairn(options, environment).Json();
    for (const Json& run : list["runs"]) dirs += run["dir"].get<std::string>().back();
    return dirs;
  }
  Registry registry_;
};

TEST_F(CairnRunsThat, AJobOrOneOfItsStepsHasUsed) {
  EXPECT_EQ(Listed({"--job", "12"}), "bc");
  EXPECT_EQ(Listed({"--job", "12.1"}), "c");
  EXPECT_EQ(Listed({"--job", "13"}), "");
  EXPECT_EQ(RunCairn({"runs", "--job", "13"}, registry_.Write()).out,
            "None of the runs that this host knows of was used so.\n");
  const Outcome no_job = RunCairn({"runs", "--job", "train"}, registry_.Write());
  EXPECT_EQ(no_job.code, 2);
  EXPECT_EQ(no_job.err, "cairn: --job: \"train\" is neither JOB nor JOB.STEP\n");
}

TEST_F(CairnRunsThat, WereUsedSince) {
  EXPECT_EQ(Listed({"--since", "2026-01-02T00:01:00Z"}), "bac");
  EXPECT_EQ(Listed({"--since", "2026-01-02T00:01:01Z"}), "ba");
  EXPECT_EQ(Listed({"--since", "2026-01-04T03:00"}), "b");  // local time
  EXPECT_EQ(Listed({"--since", "2026-01-04T03:00:01"}), "");
  EXPECT_EQ(Listed({"--since", "2026-01-04"}), "b");
  EXPECT_EQ(Listed({"--since", "2026-01-05"}), "");
  Registry now;
  now.Start(14, 0, 0, "/gone/d", static_cast<int>(std::time(nullptr) - 1767225600 - 3600));
  EXPECT_THAT(RunCairn({"runs", "--since", "2h"}, now.Write()).out, HasSubstr("/gone/d"));
  EXPECT_THAT(RunCairn({"runs", "--since", "30m"}, now.Write()).out, Not(HasSubstr("/gone/d")));
  EXPECT_EQ(RunCairn({"runs", "--since", "yesterday"}, now.Write()).err,
            "cairn: --since: \"yesterday\" is neither a date (2026-03-01, 2026-03-01T12:00, in UTC with "
            "2026-03-01T12:00:00Z) nor how long ago (90m, 12h)\n");
}

TEST_F(CairnRunsThat, WereUsedLast) {
  EXPECT_EQ(Listed({}), "bac");
  EXPECT_EQ(Listed({"-n", "2"}), "ba");
  EXPECT_EQ(Listed({"-n", "1", "--job", "11"}), "a");
}

constexpr const char* kJournal =
    R"({"event":"life","time":"2026-03-01T12:00:00Z","epoch":1,"job":"12","step":"0","restart":0,"node":"n1","world_size":4}
{"event":"saved","time":"2026-03-01T12:10:00Z","epoch":1,"checkpoint":"a","step":100,"label":100,"trigger":"interval","bytes":1,"stall_ns":1,"drain_ns":1}
{"event":"dropped","time":"2026-03-01T12:20:00Z","epoch":1,"trigger":"interval","why":"no space"}
{"event":"ending","time":"2026-03-01T12:30:00Z","epoch":1,"cause":"preempted","why":"PreemptTime is set","count":203}
{"event":"saved","time":"2026-03-01T12:30:05Z","epoch":1,"checkpoint":"step-000000000204.e1.00c0ffee","step":204,"label":204,"trigger":"preempt","bytes":1,"stall_ns":1,"drain_ns":1}
{"event":"requeued","time":"2026-03-01T12:30:06Z","epoch":1,"text":"job 12 was requeued"}
{"event":"gone","time":"2026-03-01T12:30:30Z","epoch":1,"rank":1,"why":"killed"}
no JSON at all
{"event":"life","time":"2026-03-01T12:40:00Z","epoch":2,"job":"12","step":"0","restart":1,"node":"n2","world_size":2}
{"event":"damaged","time":"2026-03-01T12:40:01Z","epoch":2,"checkpoint":"b","why":"a flipped byte"}
{"event":"restore","time":"2026-03-01T12:40:02Z","epoch":2,"checkpoint":"step-000000000204.e1.00c0ffee","step":204,"world_size":2}
{"event":"life","time":"2026-03-01T13:00:00Z","epoch":3,"job":"17","step":"0","restart":0,"node":"n2","world_size":2}
{"event":"gone","time":"2026-03-01T13:10:00Z","epoch":3,"rank":1,"why":"connection reset"}
{"event":"life","time":"2026-03-01T13:20:00Z","epoch":4,"job":"18","step":"0","restart":0,"node":"n3","world_size":1}
)";

TEST(CairnWhy, TellsHowEachLifeEnded) {
  SampleRun run;
  WriteText(run.path() + "/journal.jsonl", kJournal);
  const Outcome why = RunCairn({"why", run.path()});
  EXPECT_EQ(why.code, 0) << why.err;
  EXPECT_EQ(why.out, run.path() +
                         R"(
life 1: job 12.0, restart 0, 4 ranks, leader on n1, began 2026-03-01T12:00:00Z
  began fresh
  saved 2 times, last at step 204 (preempt)
  gave up 1 save, the last since no space
  end: preempted at step 203 (PreemptTime is set)
  requeued: job 12 was requeued
life 2: job 12.0, restart 1, 2 ranks, leader on n2, began 2026-03-01T12:40:00Z
  changed: 4 -> 2 ranks
  went on from step-000000000204.e1.00c0ffee
  passed over a damaged checkpoint, b: a flipped byte
  saved nothing
  end: killed (nothing was written: killed outright (SIGKILL, out of memory), or its node failed)
life 3: job 17.0, restart 0, 2 ranks, leader on n2, began 2026-03-01T13:00:00Z
  began fresh
  saved nothing
  end: rank lost (rank 1: connection reset)
life 4: job 18.0, restart 0, 1 rank, leader on n3, began 2026-03-01T13:20:00Z
  changed: 2 -> 1 rank
  began fresh
  saved nothing
  end: open (it runs still, or was killed outright; `cairn status` tells which)
)");
}

TEST(CairnWhy, PrintsStableJson) {
  SampleRun run;
  WriteText(run.path() + "/journal.jsonl", kJournal);
  const Json why = RunCairn({"why", "--json", run.path()}).Json();
  EXPECT_EQ(why["dir"], run.path());
  EXPECT_EQ(why["lives"][0], (Json{{"epoch", 1},
                                   {"job", "12"},
                                   {"step_id", "0"},
                                   {"restart", 0},
                                   {"node", "n1"},
                                   {"ranks", 4},
                                   {"nodes", nullptr},
                                   {"program", nullptr},
                                   {"program_hash", nullptr},
                                   {"arguments", nullptr},
                                   {"changed", Json::array()},
                                   {"began", "2026-03-01T12:00:00Z"},
                                   {"restored", nullptr},
                                   {"saves", 2},
                                   {"last_saved_step", 204},
                                   {"last_trigger", "preempt"},
                                   {"dropped", 1},
                                   {"last_dropped", "no space"},
                                   {"damaged", Json::array()},
                                   {"end", "preempted"},
                                   {"why", "PreemptTime is set"},
                                   {"end_step", 203},
                                   {"requeued", true},
                                   {"requeue_text", "job 12 was requeued"}}));
  EXPECT_EQ(why["lives"][3]["end"], "open");
}

std::string LifeLine(int epoch, int ranks, const std::string& nodes, const std::string& program,
                     const std::string& hash, const std::string& arguments) {
  return R"({"event":"life","time":"2026-03-01T12:00:00Z","epoch":)" + std::to_string(epoch) +
         R"(,"job":"12","step":"0","restart":0,"node":"n1","world_size":)" + std::to_string(ranks) +
         R"(,"nodes":")" + nodes + R"(","program":")" + program + R"(","program_hash":")" + hash +
         R"(","arguments":)" + arguments + "}\n";
}

TEST(CairnWhy, TellsWhatHasChangedSinceTheLifeBefore) {
  SampleRun run;
  WriteText(run.path() + "/journal.jsonl",
            LifeLine(1, 4, "n[1-4]", "/home/me/train", "aa", R"(["--lr","0.1"])") +
                LifeLine(2, 4, "n[1-4]", "/home/me/train", "aa", R"(["--lr","0.1"])") +
                LifeLine(3, 2, "n[1-2]", "/home/me/train", "bb", R"(["--lr","0.1","--name","my run"])") +
                LifeLine(4, 2, "n[1-2]", "/tmp/train", "bb", "[]"));
  const Json lives = RunCairn({"why", "--json", run.path()}).Json()["lives"];
  ASSERT_EQ(lives.size(), 4U);
  EXPECT_EQ(lives[0]["changed"], Json::array());
  EXPECT_EQ(lives[1]["changed"], Json::array());
  EXPECT_EQ(lives[2]["changed"], (Json{"4 -> 2 ranks", "nodes n[1-4] -> n[1-2]", "program rebuilt",
                                       "arguments --lr 0.1 -> --lr 0.1 --name 'my run'"}));
  EXPECT_EQ(lives[3]["changed"],
            (Json{"program /home/me/train -> /tmp/train", "arguments --lr 0.1 --name 'my run' -> none"}));
  EXPECT_EQ(lives[3]["arguments"], Json::array());
  EXPECT_THAT(RunCairn({"why", run.path()}).out,
              HasSubstr("\n  changed: 4 -> 2 ranks; nodes n[1-4] -> n[1-2]; program rebuilt; "));
}

TEST(CairnWhy, TellsOnlyTheLivesOfAJobThatWasNamed) {
  SampleRun run;
  WriteText(run.path() + "/journal.jsonl", kJournal);
  Registry registry;
  registry.Start(12, 0, 0, run.path());
  registry.Start(17, 0, 0, run.path());
  const Json lives = RunCairn({"why", "--json", "17"}, registry.Write()).Json()["lives"];
  ASSERT_EQ(lives.size(), 1U);
  EXPECT_EQ(lives[0]["epoch"], 3);
}

TEST(CairnWhy, KnowsALifeThatLeftInGoodOrder) {
  SampleRun run;
  WriteText(
      run.path() + "/journal.jsonl",
      R"({"event":"life","time":"t","epoch":1,"job":"12","step":"0","restart":0,"node":"n1","world_size":4})");
  auto beat = BeatFile::Create(run.dir().PathOf(names::AliveFile(1)));
  ASSERT_TRUE(beat.ok());
  EXPECT_EQ(RunCairn({"why", "--json", run.path()}).Json()["lives"][0]["end"], "open");
  ASSERT_TRUE(beat->Leave().ok());
  EXPECT_EQ(RunCairn({"why", "--json", run.path()}).Json()["lives"][0]["end"], "left");
}

TEST(CairnWhy, SaysThatNoLifeHasWrittenAJournal) {
  SampleRun run;
  const Outcome why = RunCairn({"why", run.path()});
  EXPECT_EQ(why.code, 0);
  EXPECT_EQ(why.out, run.path() + "\nno life has written its journal here\n");
}

TEST(CairnStatus, SaysThatAJobIsNotKnown) {
  const Outcome status = RunCairn({"status", "4711"}, {{"XDG_STATE_HOME", NewFolder()}});
  EXPECT_EQ(status.code, 1);
  EXPECT_EQ(status.err,
            "cairn: no run of job 4711 is known to this user on this host; `cairn runs` lists those that "
            "are, or give the run's directory\n");
}

TEST(CairnStatus, AsksWhichOfAJobsRunsIsMeant) {
  SampleRun first, second;
  Registry registry;
  registry.Start(12, 0, 0, "/a");
  registry.Start(12, 1, 0, "/b");
  const Environment environment = registry.Write();
  const Outcome status = RunCairn({"status", "12"}, environment);
  EXPECT_EQ(status.code, 2);
  EXPECT_EQ(
      status.err,
      "cairn: job 12 has several runs, name one as JOB.STEP or by its directory: 12.0 in /a, 12.1 in /b\n");
  EXPECT_THAT(RunCairn({"status", "12.1"}, environment).err, HasSubstr("cairn: /b does not exist"));
}

TEST(CairnStatus, SaysThatNoSessionIsLive) {
  SampleRun run;
  for (const std::string command : {"status", "save"}) {
    const Outcome outcome = RunCairn({command, run.path()});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "cairn: no running session keeps its checkpoints in " + run.path() +
                               " (there is no " + run.path() + "/CONTROL); `cairn why " + run.path() +
                               "` says how its lives ended\n");
  }
}

TEST(CairnStatus, SaysThatTheSessionHasEndedWhereNobodyListens) {
  SampleRun run;
  // Port 1 of this host: nobody listens there.
  ASSERT_TRUE(WriteControlFile(run.path(), {"127.0.0.1:1", "12.0.0", "train", Secret::Random()}).ok());
  const Outcome status = RunCairn({"status", "--json", run.path()});
  EXPECT_EQ(status.code, 1);
  EXPECT_EQ(status.Json()["error"]["code"], "unavailable");
  EXPECT_THAT(status.err, HasSubstr("it may have ended"));
  EXPECT_THAT(status.err, HasSubstr("; `cairn why " + run.path() + "` says how its lives ended\n"));
}

TEST(CairnStatus, CallsAControlFileOfNoSessionDamaged) {
  SampleRun run;
  WriteText(run.path() + "/CONTROL", "garbage");
  const Outcome status = RunCairn({"status", run.path()});
  EXPECT_EQ(status.code, 1);
  EXPECT_THAT(status.err, HasSubstr(run.path() + "/CONTROL is not what a session writes there"));
}

TEST(CairnSave, ChecksTagAndTimeoutBeforeItAsks) {
  SampleRun run;
  EXPECT_EQ(RunCairn({"save", run.path(), "--tag", "a/b"}).code, 2);
  const Outcome timeout = RunCairn({"save", run.path(), "--timeout", "soon"});
  EXPECT_EQ(timeout.code, 2);
  EXPECT_THAT(timeout.err, HasSubstr("--timeout: "));
}

}  // namespace
}  // namespace cairn
