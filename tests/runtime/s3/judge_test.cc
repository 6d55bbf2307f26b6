#include "runtime/s3/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn {
namespace {

Judgement Of(int status, const std::string& code, const std::string& method = "GET") {
  HttpAnswer answer;
  answer.status = status;
  if (!code.empty()) answer.text = "<Error><Code>" + code + "</Code><Message>m</Message></Error>";
  return Judge(method, answer);
}

TEST(Judge, GivesEachRefusalItsCode) {
  const struct {
    int status;
    const char* code;
    Code expected;
  } cases[] = {
      {404, "NoSuchKey", Code::kNotFound},
      {404, "NoSuchBucket", Code::kInvalid},
      {301, "PermanentRedirect", Code::kInvalid},
      {307, "", Code::kInvalid},
      {400, "AuthorizationHeaderMalformed", Code::kInvalid},
      {501, "NotImplemented", Code::kInvalid},
      {403, "AccessDenied", Code::kPermission},
      {403, "SignatureDoesNotMatch", Code::kPermission},
      {401, "", Code::kPermission},
      {403, "QuotaExceeded", Code::kNoSpace},
      {507, "", Code::kNoSpace},
      {412, "PreconditionFailed", Code::kExists},
      {416, "InvalidRange", Code::kDamage},
      {400, "EntityTooLarge", Code::kIo},
  };
  for (const auto& one : cases) {
    const Judgement judgement = Of(one.status, one.code);
    EXPECT_EQ(judgement.next, Next::kDone) << one.status << one.code;
    EXPECT_EQ(judgement.status.code(), one.expected) << one.status << one.code;
  }
}

TEST(Judge, HasAgainWhatMayPass) {
  for (const int status : {500, 502, 503, 504, 429, 408, 409}) {
    EXPECT_EQ(Of(status, "").next, Next::kAgain) << status;
    EXPECT_EQ(Of(status, "").status.code(), Code::kUnavailable) << status;
  }
  for (const char* code : {"BadDigest", "IncompleteBody", "RequestTimeout"}) {
    EXPECT_EQ(Of(400, code).next, Next::kAgain) << code;
    EXPECT_EQ(Of(400, code).status.code(), Code::kUnavailable) << code;  // what was to be sent is not damaged
  }
  EXPECT_EQ(Of(400, "ExpiredToken").next, Next::kRenew);
  EXPECT_EQ(Of(400, "ExpiredToken").status.code(), Code::kPermission);
}

TEST(Judge, TakesNoPageOfAProxysForS3sWordThatAnObjectIsNotThere) {
  for (const char* text :
       {"", "404 page not found", "<html><body>404</body></html>", "default backend - 404"}) {
    HttpAnswer answer;
    answer.status = 404;
    answer.text = text;
    EXPECT_EQ(Judge("GET", answer).next, Next::kAgain) << text;
    EXPECT_EQ(Judge("GET", answer).status.code(), Code::kUnavailable) << text;
  }
}

TEST(Judge, LooksIntoAGoodAnswerOfAPostAlone) {
  EXPECT_EQ(Of(200, "InternalError", "POST").next, Next::kAgain);
  EXPECT_EQ(Of(200, "AccessDenied", "POST").status.code(), Code::kPermission);
  EXPECT_TRUE(Of(200, "InternalError", "GET").status.ok());  // an object may be that
}

TEST(Judge, HasAgainWhatGotNoAnswerButNotWhatTlsRefused) {
  HttpAnswer answer;
  answer.lost = Status(Code::kUnavailable, "reset");
  EXPECT_EQ(Judge("GET", answer).next, Next::kAgain);
  answer.lost = Status(Code::kPermission, "certificate");
  EXPECT_EQ(Judge("GET", answer).next, Next::kDone);
}

TEST(Judge, HonoursThePauseThatTheServerWants) {
  HttpAnswer answer;
  answer.status = 503;
  answer.headers["retry-after"] = "7";
  EXPECT_EQ(Judge("GET", answer).pause, std::chrono::seconds(7));
  answer.headers["retry-after"] = "Fri, 31 Dec 1999 23:59:59 GMT";
  EXPECT_EQ(Judge("GET", answer).pause, std::chrono::seconds(0));
}

TEST(PauseBefore, GrowsTwofoldToItsLimitWithFullJitter) {
  S3Config config;
  config.first_pause = std::chrono::milliseconds(100);
  config.longest_pause = std::chrono::milliseconds(1000);
  const auto at_most = [&](int tries) { return PauseBefore(tries, 1.0, config).count(); };
  EXPECT_EQ(at_most(1), 100);
  EXPECT_EQ(at_most(2), 200);
  EXPECT_EQ(at_most(4), 800);
  EXPECT_EQ(at_most(5), 1000);
  EXPECT_EQ(at_most(1000), 1000);
  EXPECT_EQ(PauseBefore(3, 0.0, config).count(), 0);
  EXPECT_EQ(PauseBefore(3, 0.5, config).count(), 200);
}

}  // namespace
}  // namespace cairn
