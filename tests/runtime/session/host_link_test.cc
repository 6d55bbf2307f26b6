#include "runtime/session/host_link.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(QueryAbout, AsksSlurmOfAStepOfItsOwnClusterOnly) {
  Identity holder;
  holder.cluster = "c1";
  holder.job = "4000000000";
  holder.step = "2";
  holder.restart = 3;
  const auto query = QueryAbout(holder, "c1");
  ASSERT_TRUE(query);
  EXPECT_EQ(query->job, 4000000000u);
  EXPECT_EQ(query->step, 2u);
  EXPECT_EQ(query->restart, 3);
  EXPECT_FALSE(QueryAbout(holder, "c2"));
  holder.step = "";  // a batch script's own process: Slurm knows no such step, and would say that it is gone
  EXPECT_FALSE(QueryAbout(holder, "c1"));
  holder.step = "batch";
  EXPECT_FALSE(QueryAbout(holder, "c1"));
  holder.step = "2";
  holder.job = "";
  EXPECT_FALSE(QueryAbout(holder, "c1"));
}

}  // namespace
}  // namespace cairn
