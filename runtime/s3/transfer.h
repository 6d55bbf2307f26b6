// Transfer: one exchange of Transfers as libcurl sees it: the request becomes options, and callbacks make the answer.
//
// Threads: the loop's alone.
#ifndef CAIRN_RUNTIME_S3_TRANSFER_H_
#define CAIRN_RUNTIME_S3_TRANSFER_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "planner/base/status.h"
#include "runtime/s3/curl.h"
#include "runtime/s3/http.h"
#include "runtime/s3/transfers.h"

namespace cairn {

struct Transfer {
  const Curl* curl;
  const void* owner;
  HttpRequest request;
  Transfers::Done done;

  CURL* easy = nullptr;           // while it is under way; not owned
  curl_slist* headers = nullptr;  // of SetUp, for as long as `easy` is used; not owned
  char error[CURL_ERROR_SIZE] = "";
  size_t piece = 0, within = 0;  // of request.into: where the next byte goes
  HttpAnswer answer;
  Status refused;         // why the answer was cut off
  curl_off_t moved = -1;  // what Moved said when it last was enough, and when that was
  std::chrono::steady_clock::time_point moved_at;

  // Makes options of the request, for `easy`.
  void SetUp(const std::string& ca_file);
  // Why there is no whole answer, if there is none, by what libcurl says of the exchange.
  Status Outcome(CURLcode code) const;
  // Bytes, either way, until now.
  curl_off_t Moved() const;
  // Whether the answer's body goes to request.into.
  bool Fills() const { return answer.status == 206 && !request.into.empty(); }
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_TRANSFER_H_
