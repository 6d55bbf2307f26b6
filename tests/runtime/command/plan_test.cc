// plan on a real directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/formats/names.h"
#include "tests/runtime/command/program.h"
#include "tests/runtime/command/sample_run.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;
namespace fs = std::filesystem;

uint64_t FileBytes(const SampleRun& run, const std::string& checkpoint, uint32_t number) {
  return fs::file_size(run.path() + "/" + checkpoint + "/" + names::Shard(number));
}

// The sample's arrays are listed, so both ranks get half of each: of "w" what one file holds, of "field" 24 bytes. Each file is one block, the
// first of which both want.
TEST(CairnPlan, SaysWhatEachRankReadsAndHandsOn) {
  SampleRun run;
  const std::string name = run.Commit(100);
  const uint64_t first = FileBytes(run, name, 1), second = FileBytes(run, name, 2);
  const Outcome outcome = RunCairn({"plan", run.path(), "--ranks", "2", "--read-speed", "1kB", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json plan = outcome.Json();
  EXPECT_EQ(plan["checkpoint"], name);
  EXPECT_EQ(plan["saved_ranks"], 2);
  EXPECT_EQ(plan["state_bytes"], 4 * 8 * 4 + 6 * 8);
  EXPECT_EQ(plan["needed_bytes"], 4 * 8 * 4 + 6 * 8);
  EXPECT_EQ(plan["read_bytes"], first + second);
  EXPECT_EQ(plan["exchanged_bytes"], 24);
  EXPECT_DOUBLE_EQ(plan["seconds"], static_cast<double>(std::max(first, second)) / 1000);
  const Json &zero = plan["ranks"][0], &one = plan["ranks"][1];
  EXPECT_EQ(zero["state_bytes"], 88);
  EXPECT_EQ(zero["read_bytes"], first);
  EXPECT_EQ(zero["sent_bytes"], 24);
  EXPECT_EQ(zero["received_bytes"], 0);
  EXPECT_EQ(zero["reads"], (Json{{{"file", 1}, {"bytes", first}}}));
  EXPECT_EQ(zero["kept"], (Json{{{"reader", 0}, {"bytes", 88}}}));
  EXPECT_EQ(one["state_bytes"], 88);
  EXPECT_EQ(one["read_bytes"], second);
  EXPECT_EQ(one["sent_bytes"], 0);
  EXPECT_EQ(one["received_bytes"], 24);
  EXPECT_EQ(one["kept"], (Json{{{"reader", 0}, {"bytes", 24}}, {{"reader", 1}, {"bytes", 64}}}));
  EXPECT_EQ(plan["peak_memory_bytes"].get<uint64_t>() - plan["fixed_memory_bytes"].get<uint64_t>(),
            88 + std::max(first, second) + 24);
}

TEST(CairnPlan, TakesAsLongAsTheSlowestOfReadingSendingAndReceiving) {
  SampleRun run;
  run.Commit(100);
  const Outcome outcome = RunCairn({"plan", run.path(), "--ranks", "2", "--network-speed", "8", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json plan = outcome.Json();
  EXPECT_EQ(plan["seconds"], 3.0);
  EXPECT_EQ(plan["ranks"][0]["seconds"], 3.0);  // sends 24 bytes
  EXPECT_EQ(plan["ranks"][1]["seconds"], 3.0);  // receives them
}

TEST(CairnPlan, SpreadsArraysAsTheLayoutFileSays) {
  SampleRun run;
  run.Commit(100);
  const std::string file = NewFolder() + "/layout.json";
  WriteText(file, R"({"mesh": {"r": 2, "c": 4}, "arrays": {"w": [null, "c"], "fi*": null}})");
  const Json plan = RunCairn({"plan", run.path(), "--ranks", "8", "--layout", file, "--json"}).Json();
  EXPECT_EQ(plan["state_bytes"], 2 * 4 * 8 * 4) << "w twice, field not at all";
  for (const Json& rank : plan["ranks"]) EXPECT_EQ(rank["state_bytes"], 4 * 2 * 4);

  // The program's dimensions of the Fortran array are 3 and 2.
  WriteText(file, R"({"arrays": {"w": null, "field": ["ranks"]}})");
  const Json rows = RunCairn({"plan", run.path(), "--ranks", "3", "--layout", file, "--json"}).Json();
  for (const Json& rank : rows["ranks"]) EXPECT_EQ(rank["state_bytes"], 2 * 8);
}

TEST(CairnPlan, SaysWhatIsWrongWithALayoutFile) {
  SampleRun run;
  run.Commit(100);
  const std::string file = NewFolder() + "/layout.json";
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {"[1]", "is no JSON object with an object \"arrays\""},
           {R"({"arrays": {}, "axes": {}})", "\"axes\": is neither \"mesh\" nor \"arrays\""},
           {R"({"mesh": {"a": 3}, "arrays": {}})", "\"mesh\": its axes do not make 4 ranks together"},
           {R"({"mesh": {"a": 0}, "arrays": {}})", "axis \"a\" has not between 1 and 4 positions"},
           {R"({"arrays": {"w": ["b"]}})", "\"w\": \"b\" is no axis of the mesh"},
           {R"({"arrays": {"w": 7}})", "\"w\": is neither a list, nor \"flat\", nor null"},
           {R"({"arrays": {"w": ["ranks", "ranks"]}})", "axis \"ranks\" divides more than one dimension"},
           {R"({"arrays": {"w": [null, null, null]}})", "divides 3 dimensions, array \"w\" has 2"},
           {R"({"arrays": {"*": null}})", "leaves out all arrays"}}) {
    WriteText(file, text);
    const Outcome plan = RunCairn({"plan", run.path(), "--ranks", "4", "--layout", file});
    EXPECT_EQ(plan.code, 2) << text;
    EXPECT_THAT(plan.err, AllOf(StartsWith("cairn: " + file + ": "), HasSubstr(what)));
  }
}

TEST(CairnPlan, DrawsAPictureThatStandsAlone) {
  SampleRun run;
  const std::string name = run.Commit(100);
  const std::string file = NewFolder() + "/plan.svg";
  ASSERT_EQ(RunCairn({"plan", run.path(), "--ranks", "2", "--svg", file}).code, 0);
  const std::string svg = ReadText(file);
  EXPECT_THAT(svg, AllOf(StartsWith("<svg xmlns="), EndsWith("</svg>\n"), HasSubstr(name + " on 2 ranks"),
                         HasSubstr("<title>file 1 → rank 0: "), HasSubstr("<title>file 2 → rank 1: "),
                         HasSubstr("<title>rank 0 → rank 1: 24 B"), Not(HasSubstr("rank 1 → rank 0")),
                         Not(HasSubstr("href"))));
}

TEST(CairnPlan, TellsOfManyRanksTheLeastTheMedianAndTheMost) {
  SampleRun run;
  run.Commit(100);
  const Outcome plan = RunCairn({"plan", run.path(), "--ranks", "40"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(HasSubstr("\n  RANK "), HasSubstr("\n least "), HasSubstr("\nmedian "),
                              HasSubstr("\n  most ")));
}

}  // namespace
}  // namespace cairn
