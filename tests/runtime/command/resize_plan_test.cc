#include "runtime/command/resize_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

// A batch job on n[1-4] under `cairn run`.
ResizeFacts Facts() {
  ResizeFacts facts{.names = {"n1", "n2", "n3", "n4"}, .user = "me", .supervised = true};
  facts.job.job_id = 7;
  facts.job.user = "me";
  facts.job.state = "RUNNING";
  facts.job.node_list = "n[1-4]";
  facts.job.batch_host = "n1";
  facts.job.nodes = 4;
  facts.job.batch = facts.job.requeue = true;
  return facts;
}

std::string Refusal(const ResizeWish& wish, const ResizeFacts& facts) {
  const auto way = PlanResize(wish, facts);
  EXPECT_EQ(way.status().code(), Code::kUnavailable);
  return way.status().message();
}

TEST(PlanResize, ShrinksInPlaceAndNamesTheNodesThatGo) {
  const ResizeWish two{.nodes = 2}, named{.nodes = 2, .names = {"n1", "n3"}};
  EXPECT_EQ(*PlanResize(two, Facts()), ResizeWay::kShrink);
  EXPECT_THAT(NodesThatGo(two, Facts()), ElementsAre("n3", "n4"));
  EXPECT_EQ(*PlanResize(named, Facts()), ResizeWay::kShrink);
  EXPECT_THAT(NodesThatGo(named, Facts()), ElementsAre("n2", "n4"));
}

TEST(PlanResize, GrowsInPlaceWhereTheSiteAllowsIt) {
  ResizeFacts facts = Facts();
  EXPECT_THAT(Refusal({.nodes = 6}, facts), HasSubstr("permit_job_expansion"));
  facts.may_grow = true;
  EXPECT_EQ(*PlanResize({.nodes = 6}, facts), ResizeWay::kGrow);
  facts.supervised = false;
  EXPECT_THAT(Refusal({.nodes = 6}, facts), HasSubstr("would not use the nodes that come"));
}

TEST(DonorCommand, AsksForNodesLikeThoseThatTheJobHas) {
  JobRecord job = Facts().job;
  job.partition = "gpu";
  job.tasks = 32;  // it was submitted for sixteen nodes
  job.cpus = 64;
  job.gpus = 16;
  job.account = "physics";
  job.memory_per_node = "200G";
  job.end_time = 10061;
  const auto command = DonorCommand({.nodes = 6}, job, std::chrono::seconds(600), 10000);
  EXPECT_THAT(command, IsSupersetOf({"salloc", "--immediate=600", "--dependency=expand:7", "--partition=gpu",
                                     "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=16",
                                     "--gpus-per-node=4", "--account=physics", "--mem=200G", "--time=2"}));
  EXPECT_THAT(command, Not(Contains(AnyOf(HasSubstr("--qos"), HasSubstr("--mem-per-cpu")))));
}

TEST(JudgeGrowth, GoesByTheNamesOfNodesAndNotByTheirNumber) {
  using Names = std::vector<std::string>;
  const Names before = {"n1", "n2"};
  EXPECT_EQ(JudgeGrowth(true, before, Names{"n1", "n3", "n4"}), Growth::kGrown);  // n2 was lost meanwhile
  EXPECT_EQ(JudgeGrowth(false, before, Names{"n1", "n3"}), Growth::kGrown);       // only its answer was lost
  EXPECT_EQ(JudgeGrowth(false, before, Names{"n1"}), Growth::kNothing);
  EXPECT_EQ(JudgeGrowth(true, before, std::nullopt), Growth::kGrown);
  EXPECT_EQ(JudgeGrowth(false, before, std::nullopt), Growth::kUnknown);
}

TEST(PlanResize, AsksWhetherTheLifeMakesRoomBeforeAnythingIsChanged) {
  ResizeFacts facts = Facts();
  facts.may_grow = true;
  facts.why_not = "the job is being ended";
  EXPECT_THAT(Refusal({.nodes = 6}, facts), HasSubstr("job 7 cannot make room: the job is being ended"));
  EXPECT_THAT(Refusal({.nodes = 2}, facts), HasSubstr("cannot make room"));
  EXPECT_EQ(CheckLife(facts).code(), Code::kUnavailable);
  facts.why_not = "";
  EXPECT_TRUE(CheckLife(facts).ok());
  facts.job.state = "COMPLETING";
  EXPECT_EQ(CheckLife(facts).code(), Code::kUnavailable);
}

TEST(PlanResize, GoesThroughTheQueueOnlyWhereThatWasAskedFor) {
  EXPECT_THAT(Refusal({.nodes = 6}, Facts()),
              HasSubstr("--requeue saves it and puts it back into the queue for 6"));
  EXPECT_EQ(*PlanResize({.nodes = 6, .requeue = true}, Facts()), ResizeWay::kRequeue);
  EXPECT_EQ(*PlanResize({.nodes = 2, .requeue = true}, Facts()), ResizeWay::kRequeue);
}

TEST(PlanResize, RefusesWhatTheJobOrTheSiteDoesNotAllow) {
  ResizeFacts facts = Facts();
  facts.supervised = false;
  EXPECT_THAT(Refusal({.nodes = 2}, facts), HasSubstr("nobody would start the next one; --requeue"));
  EXPECT_TRUE(PlanResize({.nodes = 2, .requeue = true}, facts).ok());
  facts = Facts();
  facts.min_nodes = 3;
  EXPECT_THAT(Refusal({.nodes = 2}, facts), HasSubstr("--min-nodes=3"));
  facts = Facts();
  facts.may_shrink = false;
  EXPECT_THAT(Refusal({.nodes = 2}, facts), HasSubstr("disable_job_shrink"));
  facts = Facts();
  facts.job.requeue = false;
  EXPECT_THAT(Refusal({.nodes = 6, .requeue = true}, facts), HasSubstr("--no-requeue"));
  facts.job.batch = false;
  EXPECT_THAT(Refusal({.nodes = 6, .requeue = true}, facts), HasSubstr("no batch job"));
}

TEST(PlanResize, RefusesNodesThatAreNotThereOrCannotGo) {
  EXPECT_THAT(Refusal({.nodes = 2, .names = {"n1", "n9"}}, Facts()),
              HasSubstr("n9 is none of the job's nodes"));
  EXPECT_THAT(Refusal({.nodes = 2, .names = {"n2", "n3"}}, Facts()), HasSubstr("n1 cannot go"));
  EXPECT_THAT(Refusal({.nodes = 4}, Facts()), HasSubstr("has 4 nodes already"));
}

TEST(PlanResize, RefusesJobsOfOthersAndJobsThatAreAtTheirEnd) {
  ResizeFacts facts = Facts();
  facts.user = "you";
  EXPECT_THAT(Refusal({.nodes = 2}, facts), HasSubstr("belongs to me"));
  facts.user = "root";
  EXPECT_TRUE(PlanResize({.nodes = 2}, facts).ok());
  facts.may_grow = true;
  EXPECT_THAT(Refusal({.nodes = 6}, facts), HasSubstr("only me can let job 7 grow"));
  facts.job.preempt_time = 1796022980;
  EXPECT_THAT(Refusal({.nodes = 2}, facts), HasSubstr("being preempted"));
  facts = Facts();
  facts.job.state = "COMPLETING";
  EXPECT_THAT(Refusal({.nodes = 2}, facts), HasSubstr("COMPLETING"));
}

}  // namespace
}  // namespace cairn
