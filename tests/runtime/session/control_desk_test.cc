#include "runtime/session/control_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class ControlDeskTest : public ::testing::Test {
 protected:
  static agreement::SaveEnded Ended(std::vector<uint64_t> requests, Status status = OkStatus()) {
    return {1, kTriggerRequest, 40, std::move(status), std::move(requests)};
  }

  std::string why_not_;
  std::string why_not_resize_;
  std::vector<std::string> asked_;    // the tags
  std::vector<std::string> resizes_;  // what to
  std::vector<std::pair<uint64_t, std::string>> replies_;
  ControlDesk desk_{{[this] { return why_not_; }, [this](const std::string& tag) { asked_.push_back(tag); },
                     [this] { return why_not_resize_; },
                     [this](const std::string& nodes) { resizes_.push_back(nodes); },
                     [] { return std::string("the status"); },
                     [this](const ControlReply& reply) { replies_.emplace_back(reply.id, reply.body); }}};
};

TEST_F(ControlDeskTest, AnswersARequestWithItsOwnSaveAndNotWithTheFailureOfAnother) {
  desk_.OnRequest({7, R"({"op":"save","tag":"a"})"});
  desk_.OnNumbered("a", 3);
  EXPECT_THAT(asked_, ElementsAre("a"));
  desk_.OnSaveEnded(Ended({1, 2}, {Code::kTimeout, "time was up"}), "");
  EXPECT_THAT(replies_, IsEmpty());
  desk_.OnSaveEnded(Ended({3, 4}), "e1-s40");
  EXPECT_THAT(replies_, ElementsAre(Pair(7, R"({"checkpoint":"e1-s40","saved":true,"step":40})")));
  desk_.OnSaveEnded(Ended({3}), "e1-s40");
  EXPECT_EQ(replies_.size(), 1u);
}

TEST_F(ControlDeskTest, AnswersEachOfSeveralRequestsWithItsNumber) {
  desk_.OnRequest({7, R"({"op":"save"})"});
  desk_.OnRequest({8, R"({"op":"save"})"});
  desk_.OnNumbered("", 1);
  desk_.OnNumbered("", 2);
  desk_.OnSaveEnded(Ended({1}, {Code::kTimeout, "time was up"}), "");
  desk_.OnSaveEnded(Ended({2}), "e1-s40");
  EXPECT_THAT(replies_, ElementsAre(Pair(7, R"({"saved":false,"why":"time was up"})"),
                                    Pair(8, R"({"checkpoint":"e1-s40","saved":true,"step":40})")));
}

TEST_F(ControlDeskTest, RefusesAtOnceWhenThereAreNoMoreSaves) {
  why_not_ = "this life makes no more saves";
  desk_.OnRequest({7, R"({"op":"save"})"});
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_THAT(replies_, ElementsAre(Pair(7, R"({"saved":false,"why":"this life makes no more saves"})")));
}

TEST_F(ControlDeskTest, AnswersWhatItDoesNotUnderstand) {
  desk_.OnRequest({1, "\xff\xfe"});
  desk_.OnRequest({2, R"({"op":"save","tag":"../x"})"});
  desk_.OnRequest({3, R"({"op":"status"})"});
  ASSERT_EQ(replies_.size(), 3u);
  EXPECT_THAT(replies_[0].second, HasSubstr("unknown request"));
  EXPECT_THAT(replies_[1].second, HasSubstr("no such tag is possible"));
  EXPECT_EQ(replies_[2].second, "the status");
}

TEST_F(ControlDeskTest, AReasonThatIsNoUtf8IsTold) {
  desk_.OnRequest({7, R"({"op":"save"})"});
  desk_.OnNumbered("", 1);
  desk_.OnSaveEnded(Ended({1}, {Code::kUnavailable, "write /run/\xff failed"}), "");
  ASSERT_EQ(replies_.size(), 1u);
  EXPECT_THAT(replies_[0].second, HasSubstr("write /run/"));
}

TEST_F(ControlDeskTest, ARunThatEndsWhereItBeganSaysSo) {
  desk_.OnRequest({7, R"({"op":"save"})"});
  desk_.OnNumbered("", 1);
  desk_.OnSaveEnded(Ended({1}), "");
  EXPECT_THAT(replies_, ElementsAre(Pair(7, HasSubstr("has not moved"))));
}

TEST_F(ControlDeskTest, EndsTheLifeForAResizeOnlyOnceItIsSaved) {
  desk_.OnRequest({7, R"({"op":"resize","nodes":"2"})"});
  desk_.OnNumbered("", 1);
  desk_.OnSaveEnded(Ended({1}, {Code::kTimeout, "time was up"}), "");
  EXPECT_THAT(replies_, ElementsAre(Pair(7, R"({"saved":false,"why":"time was up"})")));
  EXPECT_THAT(resizes_, IsEmpty());
  desk_.OnRequest({8, R"({"op":"resize","nodes":"n[1-2]"})"});
  desk_.OnNumbered("", 2);
  EXPECT_THAT(resizes_, IsEmpty());
  desk_.OnSaveEnded(Ended({2}), "e1-s40");
  EXPECT_THAT(resizes_, ElementsAre("n[1-2]"));
  EXPECT_EQ(replies_.back().second, R"({"checkpoint":"e1-s40","saved":true,"step":40})");
}

TEST_F(ControlDeskTest, RefusesAResizeThatNobodyWouldFollowUp) {
  why_not_resize_ = "it was not started by cairn run";
  desk_.OnRequest({7, R"({"op":"resize","nodes":"2"})"});
  desk_.OnRequest({8, R"({"op":"save"})"});  // that is another matter
  EXPECT_THAT(replies_, ElementsAre(Pair(7, R"({"saved":false,"why":"it was not started by cairn run"})")));
  EXPECT_EQ(asked_.size(), 1u);
}

}  // namespace
}  // namespace cairn
