// Judge: what the answer to a request of S3 means, and when it is made again.
//
// Pure; any thread.
#ifndef CAIRN_RUNTIME_S3_JUDGE_H_
#define CAIRN_RUNTIME_S3_JUDGE_H_

#include <chrono>
#include <string>

#include "planner/base/status.h"
#include "runtime/s3/config.h"
#include "runtime/s3/http.h"

namespace cairn {

enum class Next {
  kDone,   // the status stands
  kAgain,  // make it again, after a pause
  kRenew,  // the credentials have expired: make it again with new ones
};

struct Judgement {
  Next next = Next::kDone;
  Status status;  // with kAgain and kRenew: what to say when there is no more time for that
  std::chrono::milliseconds pause{0};  // the server asks for one so long, at least
};

// Made again: no whole answer, 408, 409, 429, 5xx, a 404 that is not S3's own, and the 400 of a body that did not arrive as it was sent. No: other
// 4xx, TLS's refusals.
// A 200 of a POST that carries an <Error> is judged as what it carries.
//
// Codes: what is made again kUnavailable; NoSuchKey and NoSuchUpload kNotFound, but a bucket that is not there kInvalid; 412 kExists; 401 and 403 kPermission, but a quota kNoSpace; 416 kDamage;
// redirections, another region and what the server does not know (501) kInvalid; other 4xx kIo.
Judgement Judge(const std::string& method, const HttpAnswer& answer);

// The pause before try number `tries` + 1: anything up to first_pause × 2^(tries-1), at most longest_pause. `random` is in [0, 1).
std::chrono::milliseconds PauseBefore(int tries, double random, const S3Config& config);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_JUDGE_H_
