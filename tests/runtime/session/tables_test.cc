#include "runtime/session/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Tables, DealsRowsEvenlyAndLeavesOutWhatDoesNotCount) {
  // Rows 0 1 2, 10 11, 20 … 24 count: ten in all.
  const std::vector<RowRun> runs = {{0, 3}, {10, 2}, {15, 0}, {20, 5}};
  EXPECT_THAT(DealEvenly(runs, 1), ElementsAre(ElementsAre(RowRun{0, 3}, RowRun{10, 2}, RowRun{20, 5})));
  EXPECT_THAT(DealEvenly(runs, 3),
              ElementsAre(ElementsAre(RowRun{0, 3}, RowRun{10, 1}), ElementsAre(RowRun{11, 1}, RowRun{20, 2}),
                          ElementsAre(RowRun{22, 3})));
}

TEST(Tables, SomeMembersGetNothingWhenRowsAreFew) {
  EXPECT_THAT(DealEvenly({{0, 0}, {4, 2}}, 4),
              ElementsAre(ElementsAre(RowRun{4, 1}), ElementsAre(RowRun{5, 1}), IsEmpty(), IsEmpty()));
  EXPECT_THAT(DealEvenly({{0, 0}}, 2), ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(Tables, AMarkIsTwoNumbers) {
  const std::string mark = EncodeTableMark({258, 3});
  EXPECT_EQ(mark, std::string("\2\1\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16));
  const auto runs = DecodeTableMarks({mark, EncodeTableMark({261, 0})}, 261);
  ASSERT_TRUE(runs.ok());
  EXPECT_THAT(*runs, ElementsAre(RowRun{258, 3}, RowRun{261, 0}));
}

TEST(Tables, MarksThatDoNotFitTheArrayAreDamage) {
  for (const std::string& mark : {EncodeTableMark({258, 4}), EncodeTableMark({262, 0}),
                                  EncodeTableMark({1, -1}), std::string("short"), std::string()}) {
    const auto runs = DecodeTableMarks({EncodeTableMark({0, 1}), mark}, 261);
    EXPECT_EQ(runs.status().code(), Code::kDamage);
    EXPECT_THAT(runs.status().message(), HasSubstr("rank 1"));
  }
}

}  // namespace
}  // namespace cairn
