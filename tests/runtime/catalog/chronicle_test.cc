#include "runtime/catalog/chronicle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr const char* kJournal =
    R"({"event":"life","time":"2026-03-01T12:00:00.000Z","epoch":1,"job":"12","step":"0","restart":0,"node":"n1","world_size":4}
{"event":"restore","time":"2026-03-01T12:00:01.500Z","epoch":1,"checkpoint":"","step":0,"world_size":4,"saved_world_size":0}
{"event":"asked","time":"2026-03-01T12:10:00.000Z","epoch":1,"trigger":"interval","count":99}
{"event":"dropped","time":"2026-03-01T12:10:00.500Z","epoch":1,"trigger":"request","step":0,"why":"not on request"}
{"event":"staged","time":"2026-03-01T12:10:01.000Z","epoch":1,"step":100,"wait_ns":1000000000}
{"event":"partner","time":"2026-03-01T12:10:02.000Z","epoch":1,"step":100}
{"event":"saved","time":"2026-03-01T12:10:09.250Z","epoch":1,"checkpoint":"a","step":100,"label":7,"trigger":"interval","bytes":5,"stall_ns":3,"drain_ns":4,"durable_ns":9250000000}
{"event":"asked","time":"2026-03-01T12:20:00.000Z","epoch":1,"trigger":"interval","count":199}
{"event":"staged","time":"2026-03-01T12:20:01.000Z","epoch":1,"step":200,"wait_ns":1000000000}
{"event":"dropped","time":"2026-03-01T12:20:05.000Z","epoch":1,"trigger":"interval","step":200,"why":"no room"}
{"event":"progress","time":"2026-03-01T12:21:00.000Z","epoch":1,"count":230}
{"event":"life","time":"2026-03-01T13:00:00.000Z","epoch":2,"job":"12","step":"0","restart":1,"node":"n1","world_size":2}
{"event":"life","time":"2026-03-01T14:00:00.000Z","epoch":3,"job":"12","step":"0","restart":2,"node":"n1","world_size":2}
{"event":"restore","time":"2026-03-01T14:00:02.000Z","epoch":3,"checkpoint":"a","step":100,"world_size":2,"saved_world_size":4,"read_bytes":8,"near_bytes":6,"restore_ns":11}
{"event":"pruned","time":"2026-03-01T14:00:03.000Z","epoch":0,"checkpoint":"a"}
{"event":"asked","time":"2026-03-01T14:01:00.000Z","epoch":3,"trigger":"preempt","count":150}
)";

TEST(Chronicle, TellsEachSaveFromTheRequestToItsEnd) {
  const auto saves = TellChronicle(kJournal).saves;
  ASSERT_THAT(saves, SizeIs(4));
  EXPECT_EQ(saves[0].why, "not on request");  // refused while the next one was under way
  EXPECT_EQ(saves[0].step, 0);
  EXPECT_EQ(saves[1].checkpoint, "a");
  EXPECT_EQ(saves[1].label, 7);
  EXPECT_EQ(saves[1].wait_ns, 1'000'000'000);
  EXPECT_EQ(saves[1].durable_ns, 9'250'000'000);
  EXPECT_EQ(saves[1].ended_ms - saves[1].asked_ms, 9250);
  EXPECT_EQ(saves[1].partner_ms - saves[1].asked_ms, 2000);
  EXPECT_TRUE(saves[1].pruned);
  EXPECT_EQ(saves[2].why, "no room");
  EXPECT_EQ(saves[2].step, 200);
  EXPECT_FALSE(saves[2].durable());
  EXPECT_EQ(saves[3].trigger, "preempt");  // under way
  EXPECT_FALSE(saves[3].durable());
  EXPECT_EQ(saves[3].why, "");
}

TEST(Chronicle, CountsTheStepsThatTheNextRestoredLifeMakesAgain) {
  const auto lives = TellChronicle(kJournal).lives;
  ASSERT_THAT(lives, SizeIs(3));
  EXPECT_EQ(lives[0].lost_steps, 130);  // 230 − 100; the second life never came so far as to restore
  EXPECT_FALSE(lives[0].last_is_known);
  EXPECT_EQ(lives[1].lost_steps, 0);
  EXPECT_FALSE(lives[1].restored);
  EXPECT_EQ(lives[2].first_step, 100);
  EXPECT_EQ(lives[2].saved_ranks, 4);
  EXPECT_EQ(lives[2].near_bytes, 6U);
  EXPECT_EQ(lives[2].last_step, 150);
  std::vector<int64_t> steps;
  for (const Mark& mark : lives[0].marks) steps.push_back(mark.step);
  EXPECT_THAT(steps, ElementsAre(0, 99, 100, 199, 200, 230));
}

TEST(Chronicle, LeavesOutWhatItCannotRead) {
  const std::string cut = std::string(kJournal) + "{\"event\":\"saved\",\"ti";
  EXPECT_THAT(TellChronicle(cut).saves, SizeIs(4));
  EXPECT_THAT(TellChronicle("no JSON\n{}\n[1]\n{\"epoch\":1,\"event\":7,\"time\":\"t\"}\n").saves, SizeIs(0));
}

}  // namespace
}  // namespace cairn
