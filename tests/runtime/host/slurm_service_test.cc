#include "runtime/host/slurm_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/runtime/slurm/fake_scontrol.h"

namespace cairn {
namespace {

CauseReply Ask(int questions) {
  auto loop = std::move(*Loop::Start("test"));
  std::unique_ptr<SlurmService> service;
  loop->Run([&] {
    service = std::make_unique<SlurmService>(loop.get(), StepIdentity{5, 0, 1, {}, {}, "a", "me"}, true);
  });
  CauseReply reply;
  for (int i = 0; i < questions; ++i) {
    std::promise<CauseReply> answer;
    loop->Run([&] {
      service->AskCause({uint64_t{40} + static_cast<uint64_t>(i), 0},
                        [&](CauseReply r) { answer.set_value(std::move(r)); });
    });
    reply = answer.get_future().get();
  }
  loop->Run([&] { service.reset(); });
  return reply;
}

TEST(SlurmService, AnswersTheCauseAndAsksForThePartitionOnce) {
  const FakeScontrol scontrol(R"(
    echo "$*" >> $here/calls
    case "$2" in
      job) echo 'JobId=5 JobState=COMPLETING Reason=TimeLimit Requeue=1 Restarts=1 BatchFlag=1 Partition=low' ;;
      partition) echo 'PartitionName=low GraceTime=25 PreemptMode=REQUEUE' ;;
      config) echo 'KillWait                = 12 sec' ;;
    esac)");
  const CauseReply reply = Ask(2);
  EXPECT_EQ(reply.id, 41u);
  EXPECT_EQ(reply.cause, Cause::kTimeLimit);
  EXPECT_EQ(reply.seconds_left, 12);
  EXPECT_TRUE(reply.may_requeue);
  EXPECT_TRUE(reply.batch);
  EXPECT_EQ(reply.warning_seconds, 25);
  EXPECT_EQ(scontrol.Read("calls"), "show job -o 5\nshow partition -o low\nshow config\nshow job -o 5\n");
}

TEST(SlurmService, APreemptionWithoutGraceTimeLeavesKillWait) {
  const FakeScontrol scontrol(R"(
    case "$2" in
      job) echo 'JobId=5 JobState=RUNNING Reason=None Requeue=1 Restarts=1 BatchFlag=1 Partition=low' ;;
      partition) echo 'PartitionName=low GraceTime=0 PreemptMode=REQUEUE' ;;
      config) echo 'KillWait                = 12 sec' ;;
    esac)");
  EXPECT_EQ(Ask(1).warning_seconds, 12);
}

TEST(SlurmService, AnswersUnknownWhenSlurmHangs) {
  const FakeScontrol scontrol("exec sleep 1000");
  const auto begin = std::chrono::steady_clock::now();
  const CauseReply reply = Ask(1);
  EXPECT_EQ(reply.cause, Cause::kUnknown);
  EXPECT_FALSE(reply.seconds_left.has_value());
  EXPECT_FALSE(reply.answered);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(SlurmService, AnswersFromTheJobsRecordWhenThePartitionsIsSlow) {
  const FakeScontrol scontrol(R"(
    case "$2" in
      job) echo 'JobId=5 JobState=COMPLETING Reason=TimeLimit Requeue=1 Restarts=1 BatchFlag=1 Partition=low' ;;
      *) exec sleep 1000 ;;
    esac)");
  const CauseReply reply = Ask(1);
  EXPECT_TRUE(reply.answered);
  EXPECT_EQ(reply.cause, Cause::kTimeLimit);
  EXPECT_EQ(reply.seconds_left, 30);
}

TEST(SlurmService, AnswersUnknownWhenSlurmFails) {
  const FakeScontrol scontrol("echo 'Unable to contact slurm controller' >&2; exit 1");
  const CauseReply reply = Ask(1);
  EXPECT_EQ(reply.cause, Cause::kUnknown);
  EXPECT_THAT(reply.why, testing::HasSubstr("Unable to contact slurm controller"));
}

TEST(JudgeHolder, FollowsTheRecordAndTheStep) {
  const HolderQuery query{1, 5, 0, 1};
  const auto job = [&](const std::string& text) {
    return JudgeHolder(query, Result<std::string>(text), nullptr).alive;
  };
  EXPECT_EQ(job("JobId=5 JobState=RUNNING Restarts=1"), Alive::kYes);
  EXPECT_EQ(job("JobId=5 JobState=COMPLETING Restarts=1"), Alive::kYes);
  EXPECT_EQ(job("JobId=5 JobState=RUNNING Restarts=2"), Alive::kNo);
  EXPECT_EQ(job("JobId=5 JobState=CANCELLED Restarts=1"), Alive::kNo);
  EXPECT_EQ(job("nonsense"), Alive::kUnknown);
  const auto failed = [&](const char* text) {
    return JudgeHolder(query, Status(Code::kUnavailable, text), nullptr).alive;
  };
  EXPECT_EQ(
      failed("scontrol show failed with exit status 1: slurm_load_jobs error: Invalid job id specified"),
      Alive::kNo);
  EXPECT_EQ(failed("scontrol show failed with exit status 1: Unable to contact slurm controller"),
            Alive::kUnknown);

  const Result<std::string> running = std::string("JobId=5 JobState=RUNNING Restarts=1");
  const Result<std::string> ended =
      Status(Code::kUnavailable, "scontrol show failed with exit status 1: Job step 5.0 not found");
  const Result<std::string> silent = Status(Code::kTimeout, "scontrol show did not answer in time");
  EXPECT_EQ(JudgeHolder(query, running, &ended).alive, Alive::kNo);
  EXPECT_EQ(JudgeHolder(query, running, &silent).alive, Alive::kYes);
}

TEST(StepName, IsFoundInTheStepsRecord) {
  EXPECT_EQ(
      StepName("StepId=5.0 UserId=1001 State=RUNNING Tasks=4 Name=my prog Network=(null) TresPerStep=x"),
      "my prog");
  EXPECT_EQ(StepName("Job step 5.0 not found"), "");
}

}  // namespace
}  // namespace cairn
