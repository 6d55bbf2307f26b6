#include "runtime/s3/judge.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "runtime/s3/answers.h"

namespace cairn {
namespace {

// Of a body that did not arrive as it was sent, in time.
const std::set<std::string> kBroken = {
    "BadDigest",      "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch",
    "IncompleteBody", "RequestTimeout"};
const std::set<std::string> kExpired = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired",
                                        "RequestExpired"};
const std::set<std::string> kBusy = {"InternalError",       "ServiceUnavailable",         "SlowDown",
                                     "OperationAborted",    "ConditionalRequestConflict", "Throttling",
                                     "ThrottlingException", "RequestLimitExceeded"};
const std::set<std::string> kGone = {"NoSuchKey", "NoSuchUpload"};
const std::set<std::string> kFull = {"QuotaExceeded", "InsufficientStorage", "XMinioStorageFull"};
const std::set<std::string> kElsewhere = {"NoSuchBucket",
                                          "PermanentRedirect",
                                          "TemporaryRedirect",
                                          "AuthorizationHeaderMalformed",
                                          "IllegalLocationConstraintException",
                                          "InvalidBucketName"};

Code CodeOf(int status, const std::string& code) {
  if (kFull.count(code) != 0 || status == 507) return Code::kNoSpace;
  if (kElsewhere.count(code) != 0 || (status >= 300 && status < 400)) return Code::kInvalid;
  if (code == "NotImplemented" || status == 501) return Code::kInvalid;
  switch (status) {
    case 401:
    case 403:
      return Code::kPermission;
    case 404:  // of a proxy's, while the server behind it is away, says nothing about an object
      return kGone.count(code) != 0 ? Code::kNotFound : Code::kUnavailable;
    case 412:
      return Code::kExists;
    case 416:
      return Code::kDamage;
  }
  if (kBroken.count(code) != 0 || kBusy.count(code) != 0 || status >= 500 || status == 429 || status == 408 ||
      status == 409)
    return Code::kUnavailable;
  if (code == "AccessDenied") return Code::kPermission;
  return Code::kIo;
}

std::string Describe(const HttpAnswer& answer, const S3Error& error) {
  std::string text = "the server answers " + std::to_string(answer.status);
  if (!error.code.empty()) text += " " + error.code;
  if (!error.message.empty()) text += ": " + error.message;
  std::string region = error.region;
  if (const auto at = answer.headers.find("x-amz-bucket-region");
      region.empty() && at != answer.headers.end())
    region = at->second;
  const bool elsewhere = kElsewhere.count(error.code) != 0 || (answer.status >= 300 && answer.status < 400);
  if (elsewhere && !region.empty())
    text += " (the bucket is in the region " + region + ": set AWS_REGION=" + region + ")";
  return text;
}

std::chrono::milliseconds RetryAfter(const HttpAnswer& answer) {
  const auto at = answer.headers.find("retry-after");
  if (at == answer.headers.end()) return {};
  int seconds = 0;  // a date, which S3 does not send, is as good as nothing
  const std::string& text = at->second;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return wrong == std::errc() && end == text.data() + text.size()
             ? std::chrono::seconds(std::clamp(seconds, 0, 3600))
             : std::chrono::seconds(0);
}

}  // namespace

Judgement Judge(const std::string& method, const HttpAnswer& answer) {
  if (!answer.lost.ok()) {
    const Code code = answer.lost.code();
    return {code == Code::kUnavailable || code == Code::kTimeout ? Next::kAgain : Next::kDone, answer.lost};
  }
  const bool good = answer.status >= 200 && answer.status < 300;
  if (good && method != "POST") return {};  // the text may be an object's own
  const S3Error error = ParseError(answer.text);
  if (good && error.code.empty()) return {};
  Judgement judgement{Next::kDone, Status(CodeOf(answer.status, error.code), Describe(answer, error)),
                      RetryAfter(answer)};
  if (kExpired.count(error.code) != 0) {
    judgement.next = Next::kRenew;
    judgement.status = Status(Code::kPermission, judgement.status.message());
  } else if (judgement.status.code() == Code::kUnavailable) {
    judgement.next = Next::kAgain;
  }
  return judgement;
}

std::chrono::milliseconds PauseBefore(int tries, double random, const S3Config& config) {
  const double longest =
      std::min(static_cast<double>(config.longest_pause.count()),
               static_cast<double>(config.first_pause.count()) * std::exp2(std::min(tries - 1, 30)));
  return std::chrono::milliseconds(std::llround(longest * random));
}

}  // namespace cairn
