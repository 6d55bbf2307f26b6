#include "runtime/supervisor/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

JobRecord Job(int nodes, int cpus = 0, int gpus = 0) {
  JobRecord job;
  job.job_id = 7;
  job.node_list = "n[1-" + std::to_string(nodes) + "]";
  job.nodes = nodes;
  job.cpus = cpus;
  job.gpus = gpus;
  return job;
}

TEST(StepShape, FollowsTheNodesOfTheJob) {
  EXPECT_EQ(ShapeStep({.tasks_per_node = 4}, Job(3))->tasks, 12);
  EXPECT_EQ(ShapeStep({.tasks_per_node = 4}, Job(1))->tasks, 4);
  EXPECT_EQ(ShapeStep({.max_nodes = 2, .tasks_per_node = 4}, Job(3))->nodes, 2);
  EXPECT_EQ(ShapeStep({.max_nodes = 2, .tasks_per_node = 4}, Job(3))->tasks, 8);
  EXPECT_EQ(ShapeStep({.max_nodes = 8}, Job(3))->nodes, 3);
}

TEST(StepShape, CountsCpusAndGpusOfTheNodesThatAreUsed) {
  EXPECT_EQ(ShapeStep({.tasks_from = TasksFrom::kCpus}, Job(4, 32, 16))->tasks, 32);
  EXPECT_EQ(ShapeStep({.max_nodes = 2, .tasks_from = TasksFrom::kGpus}, Job(4, 32, 16))->tasks, 8);
  EXPECT_EQ(ShapeStep({.tasks_from = TasksFrom::kGpus}, Job(4, 32)).status().code(), Code::kInvalid);
}

TEST(StepShape, RefusesFewerNodesThanWanted) {
  const auto shape = ShapeStep({.min_nodes = 3}, Job(2));
  EXPECT_EQ(shape.status().code(), Code::kUnavailable);
  EXPECT_EQ(shape.status().message(), "the job has 2 nodes (n[1-2]), fewer than --min-nodes=3");
}

TEST(StepShape, GivesSrunItsOptionsBeforeTheUsers) {
  EXPECT_THAT(ShapeCommand({"/usr/bin/srun", "--mpi=pmix", "./train", "-n", "5"}, {2, 8}),
              ElementsAre("/usr/bin/srun", "--nodes=2", "--ntasks=8", "--kill-on-bad-exit=1",
                          "--ntasks-per-node=4", "--mpi=pmix", "./train", "-n", "5"));
  EXPECT_THAT(ShapeCommand({"srun", "p"}, {2, 3}),
              ElementsAre("srun", "--nodes=2", "--ntasks=3", "--kill-on-bad-exit=1", "p"));
}

TEST(StepShape, RefusesCountsThatWouldHoldForAllLives) {
  EXPECT_TRUE(CheckCommand({"srun", "-l", "./train", "-n", "5"}).ok());
  EXPECT_TRUE(CheckCommand({"/opt/slurm/bin/srun", "-c", "2", "--mpi=pmix", "./train"}).ok());
  for (const char* option :
       {"-n4", "-N", "-ln4", "--ntasks=8", "--nodes", "--nodelist=n1", "-w", "--ntasks-per-node=2",
        "--nodel=n1", "-F", "-r0", "--relative=1", "--nodefile", "--ntasks-per-gpu=1", "--ntasks-per-core=1",
        "--ntasks-per-socket=2", "--tasks-per-node=2"}) {
    const Status status = CheckCommand({"srun", "-c", "2", option, "4", "./train"});
    EXPECT_EQ(status.code(), Code::kInvalid) << option;
    EXPECT_THAT(status.message(), HasSubstr(option));
  }
  EXPECT_EQ(CheckCommand({"srun", "./train", ":", "./other"}).code(), Code::kInvalid);
  EXPECT_EQ(CheckCommand({"mpirun", "./train"}).code(), Code::kInvalid);
  EXPECT_EQ(CheckCommand({}).code(), Code::kInvalid);
}

TEST(StepShape, ReplacesWhatTheBatchScriptWasTold) {
  EXPECT_THAT(
      ShapeEnvironment({"HOME=/home/u", "SLURM_NNODES=4", "SLURM_NTASKS=8", "SLURM_TASKS_PER_NODE=2(x4)",
                        "SLURM_JOB_NODELIST=n[1-4]", "SLURM_JOB_ID=7"},
                       Job(2)),
      UnorderedElementsAre("HOME=/home/u", "SLURM_JOB_ID=7", "SLURM_NNODES=2", "SLURM_JOB_NUM_NODES=2",
                           "SLURM_NODELIST=n[1-2]", "SLURM_JOB_NODELIST=n[1-2]"));
}

}  // namespace
}  // namespace cairn
