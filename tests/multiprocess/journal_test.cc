// The journal of real lives: its events and the names of their fields are an interface (docs/reference/journal.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/multiprocess/launcher.h"

namespace cairn::testing {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

std::vector<Json> Events(const std::string& dir) {
  std::vector<Json> events;
  std::istringstream lines(ReadFile(dir + "/journal.jsonl"));
  for (std::string line; std::getline(lines, line);) events.push_back(Json::parse(line));
  return events;
}

std::vector<std::string> NamesOf(const std::vector<Json>& events, uint32_t epoch) {
  std::vector<std::string> names;
  for (const Json& event : events) {
    if (event["epoch"] == epoch) names.push_back(event["event"]);
  }
  return names;
}

// Those that the lives below cannot help writing.
const std::map<std::string, std::set<std::string>> kFields = {
    {"life",
     {"job", "step", "restart", "node", "world_size", "run_life", "nodes", "program", "program_hash",
      "arguments"}},
    {"restore",
     {"checkpoint", "step", "world_size", "saved_world_size", "state_bytes", "read_bytes", "near_bytes",
      "restore_ns"}},
    {"asked", {"trigger", "count"}},
    {"staged", {"step", "wait_ns"}},
    {"saved", {"checkpoint", "step", "label", "trigger", "bytes", "stall_ns", "drain_ns", "durable_ns"}},
    {"gone", {"rank", "why", "count"}},
    {"closed", {"why"}},
    {"finished", {"checkpoint"}},
    {"end", {"count"}}};

TEST(Journal, TellsEachStageOfEachLifeAndSaveByStableNames) {
  TempDir tmp;
  const std::string dir = tmp.path() + "/run";
  {
    Step killed({.ranks = 2,
                 .dir = dir,
                 .args = {"--n", "10007", "--steps", "1000000", "--step-us", "2000", "--save-at", "20",
                          "--wait-at", "20"}});
    ASSERT_TRUE(WaitFor([&] {
      return ReadFile(dir + "/journal.jsonl").find("\"saved\"") != std::string::npos;
    })) << killed.Log();
    killed.Kill(1, SIGKILL);
    ASSERT_TRUE(WaitFor([&] {
      return ReadFile(dir + "/journal.jsonl").find("\"gone\"") != std::string::npos;
    })) << killed.Log();
    killed.KillAll(SIGKILL);
    ASSERT_TRUE(killed.Join());
  }
  Step resumed(
      {.ranks = 3, .dir = dir, .args = {"--n", "10007", "--steps", "60", "--step-us", "2000"}, .restart = 1});
  ASSERT_TRUE(resumed.Join()) << resumed.Log();

  const std::vector<Json> events = Events(dir);
  EXPECT_THAT(NamesOf(events, 1), ElementsAre("life", "restore", "asked", "staged", "saved", "gone"));
  EXPECT_THAT(NamesOf(events, 2),
              ElementsAre("life", "restore", "asked", "staged", "saved", "finished", "closed", "end"));
  std::map<std::string, Json> last;
  for (const Json& event : events) {
    last[event["event"]] = event;
    std::set<std::string> names;
    for (const auto& [name, value] : event.items()) names.insert(name);
    std::set<std::string> expected = kFields.at(event["event"]);
    expected.insert({"event", "time", "epoch"});
    EXPECT_EQ(names, expected) << event;
    EXPECT_THAT(event["time"].get<std::string>(),
                ::testing::MatchesRegex("....-..-..T..:..:..\\.[0-9][0-9][0-9]Z"));
  }
  EXPECT_THAT(last["life"]["program"].get<std::string>(), ::testing::EndsWith("/cairn_toy"));
  EXPECT_THAT(last["life"]["arguments"].get<std::vector<std::string>>(),
              ElementsAre("--n", "10007", "--steps", "60", "--step-us", "2000"));
  EXPECT_EQ(last["restore"]["step"], 20);
  EXPECT_EQ(last["restore"]["saved_world_size"], 2);
  EXPECT_EQ(last["restore"]["world_size"], 3);
  EXPECT_EQ(last["restore"]["checkpoint"].get<std::string>().substr(0, 20), "step-000000000020.e1");
  // toy's u and v: 10,007 and 7 numbers of eight bytes, each of which was read; both lie whole in their blocks.
  EXPECT_GE(last["restore"]["state_bytes"], 10007 * 8);
  EXPECT_GE(last["restore"]["read_bytes"], last["restore"]["state_bytes"]);
  EXPECT_GT(last["restore"]["restore_ns"], 0);
  EXPECT_EQ(last["saved"]["step"], 60);
  EXPECT_EQ(last["saved"]["trigger"], "end");
  EXPECT_GT(last["saved"]["bytes"], 10007 * 8);
  EXPECT_GE(last["saved"]["durable_ns"], last["staged"]["wait_ns"]);
  EXPECT_EQ(last["end"]["count"], 60);
  EXPECT_EQ(last["gone"]["rank"], 1);
}

}  // namespace
}  // namespace cairn::testing
