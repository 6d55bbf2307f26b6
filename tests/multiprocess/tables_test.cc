// Tables whose rows move to another number of ranks. The oracle is a simulation of the same particles in one vector, without Cairn.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "tests/multiprocess/launcher.h"

namespace cairn::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Rows = std::map<int64_t, double>;  // x by id

// What lives after so many steps, of the 300 that began (those of the first rank, who has none, left out).
Rows Expected(int64_t steps, int64_t first_ranks) {
  Rows rows;
  for (int64_t id = first_ranks; id < 300; ++id) rows[id] = static_cast<double>(id);
  for (int64_t step = 0; step < steps; ++step) {
    rows.erase(7 * step);
    for (auto& [id, x] : rows) x += 0.5;
    rows[1000 + step] = static_cast<double>(-step);
  }
  return rows;
}

struct Resumed {
  int64_t step = 0, rows = 0, mine = 0;
};

class Tables : public ::testing::Test {
 protected:
  Step Start(int ranks, const std::vector<std::string>& args) {
    std::vector<std::string> program = {CAIRN_PARTICLES};
    program.insert(program.end(), args.begin(), args.end());
    return Step({.ranks = ranks, .dir = tmp_.path() + "/run", .restart = lives_++, .program = program});
  }
  void SaveWithFourRanks(const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = {"--stop-at", "20"};
    args.insert(args.end(), more.begin(), more.end());
    Step step = Start(4, args);
    ASSERT_TRUE(step.Join()) << step.Log();
  }
  static Rows RowsOf(Step& step) {
    Rows rows;
    for (int r = 0; r < step.size(); ++r) {
      std::istringstream out(step.rank(r).Out());
      for (std::string line; std::getline(out, line);) {
        std::istringstream words(line);
        std::string word;
        int64_t id = 0;
        double x = 0;
        if (!(words >> word >> id >> x) || word != "row") continue;
        EXPECT_TRUE(rows.emplace(id, x).second) << "twice: " << id;
      }
    }
    return rows;
  }
  static Resumed ResumedAt(Step& step, int rank) {
    Resumed resumed;
    std::istringstream(step.rank(rank).Line("resumed")) >> resumed.step >> resumed.rows >> resumed.mine;
    return resumed;
  }

  TempDir tmp_;
  int lives_ = 0;
};

// 300 / 16 = 18 particles would have been the first rank's.
TEST_F(Tables, RowsAreSplitEvenlyOverAnyNumberOfRanks) {
  SaveWithFourRanks();
  for (const int ranks : {3, 7, 1}) {
    Step step = Start(ranks, {"--steps", "20"});
    ASSERT_TRUE(step.Join()) << step.Log();
    int64_t least = INT64_MAX, most = 0;
    for (int r = 0; r < ranks; ++r) {
      const Resumed resumed = ResumedAt(step, r);
      EXPECT_EQ(resumed.step, 20);
      least = std::min(least, resumed.rows);
      most = std::max(most, resumed.rows);
    }
    EXPECT_LE(most - least, 1);
    EXPECT_EQ(RowsOf(step), Expected(20, 18)) << step.Log();
  }
}

TEST_F(Tables, AProgramGoesOnWithOtherRowsOnOtherRanks) {
  SaveWithFourRanks();
  {
    Step step = Start(3, {"--stop-at", "30"});
    ASSERT_TRUE(step.Join()) << step.Log();
  }
  Step step = Start(5, {});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(ResumedAt(step, 4).step, 30);
  EXPECT_EQ(RowsOf(step), Expected(40, 18)) << step.Log();
}

TEST_F(Tables, RowsGoToTheirOwners) {
  SaveWithFourRanks();
  Step step = Start(3, {"--owner", "--steps", "20"});
  ASSERT_TRUE(step.Join()) << step.Log();
  for (int r = 0; r < 3; ++r) {
    const Resumed resumed = ResumedAt(step, r);
    EXPECT_GT(resumed.rows, 0);
    EXPECT_EQ(resumed.mine, resumed.rows);
  }
  EXPECT_EQ(RowsOf(step), Expected(20, 18)) << step.Log();
  EXPECT_THAT(step.Log(),
              Not(HasSubstr("cannot hand data")));  // after the exchange of arrays, on the same links
}

// Two ranks have no room for half of them, and say so, or grow; what they then have room for is what later saves hold.
TEST_F(Tables, ARankWithoutRoomStopsTheRestoreUnlessItCanGrow) {
  SaveWithFourRanks();
  {
    Step step = Start(2, {"--capacity", "50"});
    ASSERT_TRUE(step.Join()) << step.Log();
    EXPECT_THAT(step.rank(0).Line("restore"), HasSubstr("-2 "));
    EXPECT_THAT(step.rank(0).Line("restore"), HasSubstr("table \"particles\": this rank gets 1"));
    EXPECT_THAT(step.rank(0).Line("restore"), HasSubstr("rows and has room for 50"));
  }
  for (const bool owner : {false, true}) {
    std::vector<std::string> args = {"--capacity", "50", "--grow", "--stop-at", owner ? "30" : "25"};
    if (owner) args.push_back("--owner");
    Step step = Start(2, args);
    ASSERT_TRUE(step.Join()) << step.Log();
    EXPECT_THAT(step.rank(0).Line("restore"), HasSubstr("0 "));
  }
  Step step = Start(4, {});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_EQ(ResumedAt(step, 0).step, 30);
  EXPECT_EQ(RowsOf(step), Expected(40, 18)) << step.Log();
}

TEST_F(Tables, MoreRowsThanFitCostTheSaveAlone) {
  Step step = Start(2, {"--overflow-at", "10"});
  ASSERT_TRUE(step.Join()) << step.Log();
  EXPECT_THAT(step.Log(), HasSubstr("item \"particles\": 501 rows count, of 500 that fit"));
  EXPECT_EQ(step.rank(0).Line("done"), "0");
  EXPECT_EQ(RowsOf(step), Expected(40, 75));
}

}  // namespace
}  // namespace cairn::testing
