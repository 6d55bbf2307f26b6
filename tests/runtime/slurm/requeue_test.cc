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

RequeueResult RequeueJobFive(bool script_may_end = false) {
  auto loop = std::move(*Loop::Start("test"));
  std::unique_ptr<CommandRunner> runner;
  std::promise<RequeueResult> answer;
  loop->Run([&] {
    runner = std::make_unique<CommandRunner>(loop.get());
    const RequeueOrder order{.job = 5, .step = 2, .restart = 1, .script_may_end = script_may_end};
    Requeue(runner.get(), order, std::chrono::milliseconds(20000),
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

// A job whose record says `job`. What $refused is a pattern of fails.
std::string Preempted(const std::string& refused,
                      const std::string& job = "PreemptTime=2026-11-30T07:16:20") {
  return R"(
    echo "$command $*" >> $here/calls
    case "$command $*" in )" +
         refused + R"() exit 1 ;; esac
    if [ $1 = requeue ]; then touch $here/requeued; fi
    if [ -e $here/requeued ]; then restarts=2; else restarts=1; fi
    [ "$1" != show ] || echo "JobId=5 JobState=RUNNING Requeue=1 Restarts=$restarts BatchFlag=1 )" +
         job + "\"";
}

TEST(Requeue, StopsTheScriptOfAJobInItsGraceTimeAndEndsTheStepWhereThatIsAllowed) {
  const FakeScontrol scontrol(Preempted("nothing"));
  const RequeueResult result = RequeueJobFive(true);
  EXPECT_TRUE(result.requeued);
  EXPECT_EQ(result.stopped_script, "5");
  EXPECT_THAT(result.text, HasSubstr("as its script ends, and will resume"));
  EXPECT_EQ(scontrol.Read("calls"),
            "scontrol show job -o 5\nscancel --batch --signal=STOP 5\nscancel --signal=TERM 5.2\n");
}

TEST(Requeue, CallsForARequeueWhereTheScriptCannotBeStopped) {
  const FakeScontrol scontrol(Preempted("*STOP*"));
  const RequeueResult result = RequeueJobFive(true);
  EXPECT_TRUE(result.requeued);
  EXPECT_EQ(result.stopped_script, "");
  EXPECT_THAT(scontrol.Read("calls"), HasSubstr("scontrol requeue 5\n"));
}

TEST(Requeue, LetsTheScriptGoOnAndCallsForARequeueWhereTheStepCannotBeSignalled) {
  const FakeScontrol scontrol(Preempted("*5.2"));
  const RequeueResult result = RequeueJobFive(true);
  EXPECT_TRUE(result.requeued);
  EXPECT_EQ(result.stopped_script, "");
  EXPECT_THAT(scontrol.Read("calls"),
              HasSubstr("scancel --signal=TERM 5.2\nscancel --batch --signal=CONT 5\nscontrol requeue 5\n"));
}

TEST(Requeue, StopsNoScriptOutsideAGraceTimeNorOfAHeterogeneousJob) {
  for (const std::string job :
       {"PreemptTime=None", "PreemptTime=2026-11-30T07:16:20 HetJobId=5 HetJobOffset=0"}) {
    const FakeScontrol scontrol(Preempted("nothing", job));
    EXPECT_TRUE(RequeueJobFive(true).requeued) << job;
    EXPECT_THAT(scontrol.Read("calls"), testing::Not(HasSubstr("scancel"))) << job;
  }
}

}  // namespace
}  // namespace cairn
