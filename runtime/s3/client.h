// S3Client: signed requests to one bucket, each made again until it is answered or its deadline has passed.
//
// 1. S3Requests begins requests (Transfers holds the threads' end of them) and takes their answers, in the thread of the call that wants them.
// 2. Judge says what an answer means. What is to be made again waits for a random pause of growing length (full jitter), or for as long as the
//    server asks, and is not begun again when its deadline would pass before. That counts from the first failure on: a request may wait long for
//    its turn behind others, and what is sent while bytes move takes as long as it takes.
// 3. Credentials are looked at before each try; once a request the server may say that they have expired, and they are read again.
//// 4. Each try ends. One whose work the server does at its end (POST) has as long as the deadline; any other is cut off where it moves less than
//    1 KiB a second. Small requests for one object, signs of life among them, go before bulk, and their first tries are short: an answer that
//    takes more than 5 s (then 10 s, 20 s, …) is asked for anew.
// 5. The answer to a HEAD that is refused has no text, which would say why (NoSuchKey, ExpiredToken), and whether it is S3 who speaks: it is asked
//    for again as a GET, of which no more than the head is read.
//
// Threads: S3Client any; S3Requests one at a time. Neither does anything in a forked child: requests fail there as kUnavailable.
#ifndef CAIRN_RUNTIME_S3_CLIENT_H_
#define CAIRN_RUNTIME_S3_CLIENT_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/s3/config.h"
#include "runtime/s3/credentials.h"
#include "runtime/s3/http.h"
#include "runtime/s3/transfers.h"

namespace cairn {

struct S3Request {
  std::string method = "GET";
  std::string key;  // "" = the bucket
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;
  std::span<const std::byte>
      body;  // must stay as it is until the answer; sent with its MD5, which the server checks
  std::vector<HttpPiece> into;  // see HttpRequest
  uint64_t max_text = 16 << 20;
  std::vector<int>
      accept;  // statuses of 400 and more that are no errors to this request, where S3 itself says so
};

class S3Client {
 public:
  static Result<std::unique_ptr<S3Client>> Start(const S3Config& config, const Environment& get);

  // Makes one request. The status names the object, the address and, where it is a refusal, the credentials.
  Result<HttpAnswer> Make(S3Request request);

  const S3Config& config() const { return config_; }

 private:
  friend class S3Requests;
  S3Client(const S3Config& config, const Environment& get, std::unique_ptr<Transfers> transfers);

  const S3Config config_;
  const uint64_t generation_;  // see ForkGuard
  const std::unique_ptr<Transfers> transfers_;
  CredentialsChain credentials_;
};

// Requests of one call that are under way at the same time.
class S3Requests {
 public:
  // What to do with an answer that is not an error; what it returns counts as the request's status.
  using Take = std::function<Status(HttpAnswer)>;

  explicit S3Requests(S3Client* client);
  ~S3Requests() { GiveUp(); }
  S3Requests(const S3Requests&) = delete;
  S3Requests& operator=(const S3Requests&) = delete;

  // Begins a request. Nothing is begun after an error.
  void Add(S3Request request, Take take);
  // Gives up what is not answered: its memory is not touched any more. Nothing can be begun after it.
  void GiveUp();
  // Any thread: WaitUntilBelow, under way or to come, fails as kCancelled.
  void Cancel();
  // Waits until fewer than `count` are not answered, or one has failed. The first failure, now and ever after.
  Status WaitUntilBelow(size_t count);

 private:
  using Clock = std::chrono::steady_clock;

  struct One {
    S3Request request;
    Take take;
    std::map<std::string, std::string> headers;  // of the request, with its checksums
    Credentials credentials;                     // of the last try
    std::optional<Clock::time_point> deadline;   // from the first failure on
    std::optional<Clock::time_point> next_try;   // while it waits for one
    int tries = 0;
    bool renewed = false;
  };
  struct Answered {
    std::list<One>::iterator one;
    HttpAnswer answer;
  };
  // What the loop's thread and the call's share.
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable filled;
    std::vector<Answered> answers;
    bool cancelled = false;
  };

  void Try(std::list<One>::iterator one);
  void OnAnswer(Answered answered);
  void Fail(const One& one, const Status& status);

  S3Client* const client_;
  std::list<One> open_;
  Status failed_;
  Mailbox mailbox_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_CLIENT_H_
