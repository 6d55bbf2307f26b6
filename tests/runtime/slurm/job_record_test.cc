#include "runtime/slurm/job_record.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn {
namespace {

// Slurm 22.05.8, one line as scontrol -o prints it.
constexpr char kRunning[] =
    "JobId=675001 JobName=my run UserId=cairn-dev(1001) GroupId=cairn-dev(1001) MCS_label=N/A "
    "Priority=4294901759 Nice=0 Account=(null) "
    "QOS=(null) JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 "
    "ExitCode=0:0 RunTime=00:00:12 "
    "TimeLimit=1-02:05:00 TimeMin=N/A SubmitTime=2026-11-30T07:15:59 EligibleTime=2026-11-30T07:15:59 "
    "AccrueTime=2026-11-30T07:15:59 "
    "StartTime=2026-11-30T07:16:00 EndTime=2026-11-30T07:16:45 Deadline=N/A "
    "PreemptEligibleTime=2026-11-30T07:16:00 "
    "PreemptTime=2026-11-30T07:16:20 SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-30T07:16:00 "
    "Scheduler=Main Partition=low "
    "AllocNode:Sid=localhost:6588 ReqNodeList=(null) ExcNodeList=(null) NodeList=n[1-4] BatchHost=n1 "
    "NumNodes=4 NumCPUs=32 NumTasks=4 "
    "CPUs/Task=1 ReqB:S:C:T=0:0:*:* TRES=cpu=4,mem=4M,node=4,billing=4 Socks/Node=* Command=/home/u/run.sh "
    "--restarts Restarts=9 "
    "WorkDir=/tmp/work StdErr=/dev/null StdIn=/dev/null StdOut=/dev/null Power= \n";

TEST(JobRecord, ReadsWhatSlurmPrints) {
  const auto r = ParseJobRecord(kRunning, 675001);
  ASSERT_TRUE(r.ok()) << r.status().message();
  EXPECT_EQ(r->job_id, 675001u);
  EXPECT_EQ(r->name, "my run");
  EXPECT_EQ(r->user, "cairn-dev");
  EXPECT_EQ(r->state, "RUNNING");
  EXPECT_EQ(r->reason, "None");
  EXPECT_EQ(r->partition, "low");
  EXPECT_EQ(r->node_list, "n[1-4]");
  EXPECT_EQ(r->batch_host, "n1");
  EXPECT_EQ(r->nodes, 4);
  EXPECT_EQ(r->cpus, 32);
  EXPECT_EQ(r->tasks, 4);
  EXPECT_EQ(r->gpus, 0);
  EXPECT_EQ(r->work_dir, "/tmp/work");
  EXPECT_EQ(r->exit_code, "0:0");
  EXPECT_EQ(r->restarts, 2);
  EXPECT_TRUE(r->requeue);
  EXPECT_TRUE(r->batch);
  EXPECT_EQ(r->start_time, 1796022960);  // date -u -d 2026-11-30T07:16:00 +%s
  EXPECT_EQ(r->end_time, 1796023005);
  EXPECT_EQ(r->preempt_time, 1796022980);
  EXPECT_EQ(r->time_limit, std::chrono::seconds(93900));
  EXPECT_FALSE(r->array_job_id || r->array_task_id || r->het_job_id);
}

TEST(JobRecord, CountsGpusInTheWordsOfOldAndNewSlurm) {
  const auto gpus = [](const std::string& tres) {
    return ParseJobRecord("JobId=5 JobState=RUNNING NumNodes=2 " + tres, 5)->gpus;
  };
  EXPECT_EQ(gpus("TRES=cpu=32,mem=4G,node=2,billing=32,gres/gpu=8"), 8);
  EXPECT_EQ(gpus("ReqTRES=cpu=1,gres/gpu=1 AllocTRES=cpu=32,node=2,gres/gpu=16,gres/gpu:a100=16"), 16);
}

TEST(JobRecord, ReadsWhatANodeOfTheSameKindNeeds) {
  EXPECT_EQ(ParseJobRecord(kRunning, 675001)->account, "");
  const auto r = ParseJobRecord(
      "JobId=5 JobState=RUNNING Account=physics QOS=normal Partition=low MinCPUsNode=1 "
      "MinMemoryCPU=4000M",
      5);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->account, "physics");
  EXPECT_EQ(r->qos, "normal");
  EXPECT_EQ(r->memory_per_node, "");
  EXPECT_EQ(r->memory_per_cpu, "4000M");
  const auto whole = ParseJobRecord("JobId=5 JobState=RUNNING MinCPUsNode=1 MinMemoryNode=0", 5);
  EXPECT_EQ(whole->memory_per_node, "0");  // --mem=0
  EXPECT_EQ(whole->memory_per_cpu, "");
}

TEST(JobRecord, TakesUnknownTimesForNone) {
  const auto r = ParseJobRecord(
      "JobId=5 JobState=PENDING Restarts=0 StartTime=Unknown EndTime=Unknown PreemptTime=None "
      "TimeLimit=UNLIMITED",
      5);
  ASSERT_TRUE(r.ok());
  EXPECT_FALSE(r->start_time || r->end_time || r->preempt_time || r->time_limit);
  EXPECT_FALSE(r->requeue || r->batch);
}

TEST(JobRecord, ReadsArraysAndHeterogeneousJobs) {
  const auto task = ParseJobRecord("JobId=22 ArrayJobId=20 ArrayTaskId=3 JobName=a JobState=RUNNING", 22);
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(task->array_job_id, 20u);
  EXPECT_EQ(task->array_task_id, 3u);
  const auto component = ParseJobRecord(
      "JobId=30 HetJobId=30 HetJobOffset=0 JobName=a JobState=RUNNING\nJobId=31 HetJobId=30 HetJobOffset=1 "
      "JobName=a JobState=COMPLETING\n",
      31);
  ASSERT_TRUE(component.ok());
  EXPECT_EQ(component->het_job_id, 30u);
  EXPECT_EQ(component->het_job_offset, 1u);
  EXPECT_EQ(component->state, "COMPLETING");
}

TEST(JobRecord, TakesTheFlagsOfARunningJobForRunning) {
  for (const std::string state : {"SIGNALING", "RESIZING"}) {
    const auto r = ParseJobRecord("JobId=5 JobState=" + state + " Reason=None", 5);
    ASSERT_TRUE(r.ok());
    EXPECT_EQ(r->state, "RUNNING") << state;
  }
}

TEST(JobRecord, RefusesOtherAnswers) {
  EXPECT_EQ(ParseJobRecord("", 5).status().code(), Code::kInvalid);
  EXPECT_EQ(ParseJobRecord("slurm_load_jobs error: Unable to contact slurm controller", 5).status().code(),
            Code::kInvalid);
  EXPECT_EQ(ParseJobRecord("JobId=6 JobState=RUNNING", 5).status().code(), Code::kNotFound);
}

TEST(PartitionRecord, ReadsGraceTimeAndPreemptMode) {
  const auto p = ParsePartitionRecord(
      "PartitionName=low AllowGroups=ALL Default=YES DefaultTime=00:30:00 GraceTime=25 Hidden=NO "
      "PriorityTier=1 PreemptMode=REQUEUE State=UP\n");
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->name, "low");
  EXPECT_EQ(p->grace_time, std::chrono::seconds(25));
  EXPECT_EQ(p->preempt_mode, "REQUEUE");
  EXPECT_FALSE(ParsePartitionRecord("Partition low not found").ok());
}

TEST(KillWait, IsReadFromTheConfigurationOrSlurmsDefault) {
  EXPECT_EQ(ParseKillWait("KeepAliveTime           = SYSTEM_DEFAULT\nKillOnBadExit           = 0\nKillWait   "
                          "             = 10 sec\n"),
            std::chrono::seconds(10));
  EXPECT_EQ(ParseKillWait(""), std::chrono::seconds(30));
}

TEST(ParseSlurmRelease, ReadsYearAndMonthOrNothing) {
  const std::string head =
      "Configuration data as of 2026-11-30T07:16:25\nSLURM_CONF              = /etc/slurm.conf\n";
  EXPECT_EQ(ParseSlurmRelease(head + "SLURM_VERSION           = 24.11.5\nSrunEpilog = (null)\n"), 2411);
  EXPECT_EQ(ParseSlurmRelease(head + "SLURM_VERSION           = 25.05.0-0rc1\n"), 2505);
  EXPECT_EQ(ParseSlurmRelease(head + "SLURM_VERSION           = unknown\n"), 0);
  EXPECT_EQ(ParseSlurmRelease(head), 0);
}

}  // namespace
}  // namespace cairn
