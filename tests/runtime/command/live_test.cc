// status and save against a live host process, with a leader that gives recorded answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "runtime/control/control_client.h"
#include "runtime/host/host_protocol.h"
#include "tests/runtime/command/program.h"
#include "tests/runtime/command/sample_run.h"
#include "tests/runtime/control/world.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

class LiveSession : public ::testing::Test {
 protected:
  LiveSession() : leader_(host_.OptionsFor(0, 1, "n1")) {
    EXPECT_TRUE(leader_.AwaitReady()->status.ok());
    const ControlPoint point{"127.0.0.1:" + std::to_string(host_.port), "12.0.1", "main",
                             host_.token.ControlKey()};
    EXPECT_TRUE(WriteControlFile(run_.path(), point).ok());
  }

  // Runs `cairn`, whose request must be `expected`, and answers it with `body`.
  Outcome Ask(const std::vector<std::string>& arguments, const Json& expected, const std::string& body) {
    auto outcome = std::async(std::launch::async, [&] { return RunCairn(arguments); });
    const auto event = leader_.Await([](const Event& e) { return e.kind == Event::kHost; });
    if (event) {
      const auto request = DecodeHostMessage<ControlRequest>(event->text);
      EXPECT_EQ(Json::parse(request->body), expected);
      EXPECT_TRUE(
          leader_
              .Do([&](Fabric* f) {
                return f->SendToHost(kHostControlReply, EncodeHostMessage(ControlReply{request->id, body}));
              })
              .ok());
    }
    EXPECT_TRUE(event.has_value());
    return outcome.get();
  }

  SampleRun run_;
  Host host_;
  Member leader_;
};

constexpr const char* kStatus =
    R"({"dir":"/scratch/run7","job":"12","step_id":"0","restart":1,"world_size":4,"count":1234,"step_ms":12.5,"restored_step":1000,
        "save":"draining","save_step":1230,"interval":"every 7 m 0 s","fit":"a preemption leaves 1 m 0 s: …","ending":"running","last_failure":"no space",
        "last_save":{"checkpoint":"step-x","step":1200,"label":120,"trigger":"interval","bytes":38200000000,"stall_ns":20000000,"drain_ns":1500000000,"durable_ns":4100000000}})";

TEST_F(LiveSession, StatusIsPrintedForPeople) {
  const Outcome status = Ask({"status", run_.path()}, {{"op", "status"}}, kStatus);
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_EQ(status.out, R"(job         12.0, restart 1
directory   /scratch/run7
ranks       4
step        1234, 12 ms each
restored    from step 1000
save        draining, of step 1230
interval    every 7 m 0 s
fit         a preemption leaves 1 m 0 s: …
ending      running
last save   step 1200, label 120, trigger interval: 38.2 GB, stalled 20 ms, durable after 4.1 s
failed      no space
)");
}

TEST_F(LiveSession, StatusTellsHowFarTheSaveUnderWayIs) {
  Json status = Json::parse(kStatus);
  status["save"] = "draining";
  status["drain"] = {
      {"bytes", 12400000000}, {"written", 3200000000}, {"ranks", 4},      {"bytes_per_second", 850000000},
      {"seconds_left", 10.8}, {"writer", "io_uring"},  {"limit", nullptr}};
  EXPECT_THAT(Ask({"status", run_.path()}, {{"op", "status"}}, status.dump()).out,
              HasSubstr("save        draining, of step 1230\n"
                        "writing     3.2 GB of 12.4 GB, 850.0 MB/s, 10.8 s left, by io_uring\n"));
  status["drain"]["seconds_left"] = nullptr;
  status["drain"]["limit"] = 500000000;
  EXPECT_THAT(
      Ask({"status", run_.path()}, {{"op", "status"}}, status.dump()).out,
      HasSubstr("writing     3.2 GB of 12.4 GB, 850.0 MB/s, by io_uring, at most 500.0 MB/s a node\n"));
}

TEST_F(LiveSession, StatusIsPassedOnAsJson) {
  EXPECT_EQ(Ask({"status", "--json", run_.path()}, {{"op", "status"}}, kStatus).Json(), Json::parse(kStatus));
}

TEST_F(LiveSession, StatusOfAnotherVersionIsAnError) {
  const Outcome status = Ask({"status", run_.path()}, {{"op", "status"}}, R"({"job": 12})");
  EXPECT_EQ(status.code, 1);
  EXPECT_THAT(status.err, HasSubstr("it may be of another version of Cairn; see `cairn status --json`"));
}

TEST_F(LiveSession, SaveWaitsForTheCheckpointAndAsksForTheTag) {
  const std::string name = run_.Commit(7);
  const Outcome save = Ask({"save", run_.path(), "--tag", "before"}, {{"op", "save"}, {"tag", "before"}},
                           Json{{"saved", true}, {"step", 7}, {"checkpoint", name}}.dump());
  EXPECT_EQ(save.code, 0) << save.err;
  EXPECT_EQ(save.out, "saved  " + name + ", step 7, is durable in " + run_.path() + ", tagged before\n");
}

TEST_F(LiveSession, SavePrintsStableJson) {
  const std::string name = run_.Commit(7);
  const Json reply = {{"saved", true}, {"step", 7}, {"checkpoint", name}};
  Json expected = reply;
  expected["dir"] = run_.path();
  EXPECT_EQ(Ask({"save", "--json", run_.path()}, {{"op", "save"}}, reply.dump()).Json(), expected);
}

TEST_F(LiveSession, SaveTellsWhyTheJobDidNot) {
  const Outcome save =
      Ask({"save", run_.path()}, {{"op", "save"}}, R"({"saved":false,"why":"rank 3 was silent"})");
  EXPECT_EQ(save.code, 1);
  EXPECT_EQ(save.err,
            "cairn: the job did not save: rank 3 was silent; the older checkpoints are as they were\n");
}

TEST_F(LiveSession, SaveSaysThatItGaveUpWaiting) {
  const Outcome save = RunCairn({"save", run_.path(), "--timeout", "100ms"});
  EXPECT_EQ(save.code, 1);
  EXPECT_THAT(save.err, HasSubstr("(waited 100 ms); it may still come, `cairn ls` will show it\n"));
}

}  // namespace
}  // namespace cairn
