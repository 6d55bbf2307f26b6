#include "runtime/slurm/requeue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/runtime/slurm/fake_scontrol.h"

namespace cairn {
namespace {

using testing::HasSubstr;

JobRecord Record(const std::string& text, uint32_t job) { return *ParseJobRecord(text, job); }

TEST(RequeueTarget, NamesExactlyThisJob) {
  EXPECT_EQ(RequeueTarget(Record("JobId=12 JobState=RUNNING", 12)), "12");
  EXPECT_EQ(RequeueTarget(Record("JobId=22 ArrayJobId=20 ArrayTaskId=3 JobState=RUNNING", 22)), "20_3");
  EXPECT_EQ(RequeueTarget(Record("JobId=31 HetJobId=30 HetJobOffset=1 JobState=RUNNING", 31)), "30");
}

TEST(WhyNotRequeue, AllowsPreemptedAndTimedOutBatchJobsAlone) {
  const auto why = [](const std::string& text) { return WhyNotRequeue(Record("JobId=5 " + text, 5), 1); };
  EXPECT_EQ(why("JobState=RUNNING Requeue=1 Restarts=1 BatchFlag=1"), "");
  EXPECT_EQ(why("JobState=COMPLETING Reason=TimeLimit Requeue=1 Restarts=1 BatchFlag=1"), "");
  EXPECT_THAT(why("JobState=COMPLETING Reason=None Requeue=1 Restarts=1 BatchFlag=1"),
              HasSubstr("cancelled or has ended"));
  EXPECT_THAT(why("JobState=CANCELLED Requeue=1 Restarts=1 BatchFlag=1"),
              HasSubstr("cancelled or has ended"));
  EXPECT_THAT(why("JobState=RUNNING Requeue=1 Restarts=2 BatchFlag=1"), HasSubstr("already"));
  EXPECT_THAT(why("JobState=RUNNING Requeue=0 Restarts=1 BatchFlag=1"), HasSubstr("--no-requeue"));
  EXPECT_THAT(why("JobState=RUNNING Requeue=1 Restarts=1 BatchFlag=0"), HasSubstr("no batch job"));
}

RequeueResult RequeueJobFive() {
  auto loop = std::move(*Loop::Start("test"));
  std::unique_ptr<CommandRunner> runner;
  std::promise<RequeueResult> answer;
  loop->Run([&] {
    runner = std::make_unique<CommandRunner>(loop.get());
    Requeue(runner.get(), 5, 1, std::chrono::milliseconds(20000),
            [&](RequeueResult r) { answer.set_value(std::move(r)); });
  });
  RequeueResult result = answer.get_future().get();
  loop->Run([&] { runner.reset(); });
  return result;
}

TEST(Requeue, CallsOnceAndReadsTheStateBack) {
  const FakeScontrol scontrol(R"(
    echo "$*" >> $here/calls
    case "$1" in
      requeue) touch $here/requeued ;;
      show) if [ -e $here/requeued ]
            then echo 'JobId=5 JobState=COMPLETING Requeue=1 Restarts=2 BatchFlag=1'
            else echo 'JobId=5 JobState=RUNNING Requeue=1 Restarts=1 BatchFlag=1'; fi ;;
    esac)");
  const RequeueResult result = RequeueJobFive();
  EXPECT_TRUE(result.requeued);
  EXPECT_THAT(result.text, HasSubstr("scontrol update JobId=5 StartTime=now+2"));
  EXPECT_EQ(scontrol.Read("calls"), "show job -o 5\nrequeue 5\nshow job -o 5\n");
}

TEST(Requeue, DoesNotTrustARequeueThatChangedNothing) {
  const FakeScontrol scontrol(
      "[ $1 = requeue ] || echo 'JobId=5 JobState=RUNNING Requeue=1 Restarts=1 BatchFlag=1'");
  const RequeueResult result = RequeueJobFive();
  EXPECT_FALSE(result.requeued);
  EXPECT_THAT(result.text, HasSubstr("Restarts=1"));
}

TEST(Requeue, NeverRevivesACancelledJob) {
  const FakeScontrol scontrol(
      "echo \"$*\" >> $here/calls; echo 'JobId=5 JobState=COMPLETING Requeue=1 Restarts=1 BatchFlag=1'");
  EXPECT_FALSE(RequeueJobFive().requeued);
  EXPECT_EQ(scontrol.Read("calls"), "show job -o 5\n");
}

TEST(Requeue, SaysThatSlurmRefused) {
  const FakeScontrol scontrol(R"(
    if [ $1 = requeue ]; then echo 'Requested operation is presently disabled' >&2; exit 1; fi
    echo 'JobId=5 JobState=RUNNING Requeue=1 Restarts=1 BatchFlag=1')");
  const RequeueResult result = RequeueJobFive();
  EXPECT_FALSE(result.requeued);
  EXPECT_THAT(result.text, HasSubstr("Requested operation is presently disabled"));
}

}  // namespace
}  // namespace cairn
