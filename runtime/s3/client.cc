#include "runtime/s3/client.h"

#include <md5.h>
#include <sodium.h>

#include <algorithm>
#include <random>
#include <utility>

#include "runtime/io/fork_guard.h"
#include "runtime/s3/judge.h"
#include "runtime/settings.h"

namespace cairn {
namespace {

constexpr char kHashOfNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

constexpr size_t kMostOfSmall = 64 << 10;
constexpr uint64_t kLeastRate = 1 << 10;  // bytes per second

// A first try is short: of what is answered in milliseconds the answer that has not come in seconds will not come, and another connection may do.
std::chrono::milliseconds ShortStall(int tries, std::chrono::milliseconds longest) {
  return std::min(longest, std::chrono::milliseconds(5000) * (1 << std::min(tries - 1, 16)));
}

std::string Md5InBase64(std::span<const std::byte> bytes) {
  MD5_CTX context;
  MD5Init(&context);
  MD5Update(&context, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  uint8_t digest[MD5_DIGEST_LENGTH];
  MD5Final(digest, &context);
  char text[sodium_base64_ENCODED_LEN(MD5_DIGEST_LENGTH, sodium_base64_VARIANT_ORIGINAL)];
  sodium_bin2base64(text, sizeof text, digest, sizeof digest, sodium_base64_VARIANT_ORIGINAL);
  return text;
}

double Random() {
  thread_local std::minstd_rand generator(std::random_device{}());
  return std::uniform_real_distribution<double>()(generator);
}

}  // namespace

S3Client::S3Client(const S3Config& config, const Environment& get, std::unique_ptr<Transfers> transfers)
    : config_(config),
      generation_(ForkGuard::Generation()),
      transfers_(std::move(transfers)),
      credentials_(get, [this](HttpRequest request) { return transfers_->Exchange(std::move(request)); }) {}

Result<std::unique_ptr<S3Client>> S3Client::Start(const S3Config& config, const Environment& get) {
  CAIRN_ASSIGN_OR_RETURN(std::unique_ptr<Transfers> transfers,
                         Transfers::Start({config.connections, config.stall, config.ca_file}));
  return std::unique_ptr<S3Client>(new S3Client(config, get, std::move(transfers)));
}

Result<HttpAnswer> S3Client::Make(S3Request request) {
  HttpAnswer answer;
  S3Requests requests(this);
  requests.Add(std::move(request), [&](HttpAnswer got) {
    answer = std::move(got);
    return OkStatus();
  });
  CAIRN_RETURN_IF_ERROR(requests.WaitUntilBelow(1));
  return answer;
}

S3Requests::S3Requests(S3Client* client) : client_(client) {}

void S3Requests::GiveUp() {
  if (!open_.empty()) client_->transfers_->Cancel(this);
  open_.clear();
  if (failed_.ok()) failed_ = Status(Code::kCancelled, "given up");
}

void S3Requests::Add(S3Request request, Take take) {
  if (!failed_.ok()) return;
  const auto one = open_.emplace(open_.end());
  one->headers = request.headers;
  // A signature over the body's hash would cost the server and us a second reading of it. Its MD5 is signed, and checked by every server.
  one->headers["x-amz-content-sha256"] = request.body.empty() ? kHashOfNothing : "UNSIGNED-PAYLOAD";
  if (!request.body.empty()) one->headers["Content-MD5"] = Md5InBase64(request.body);
  if (request.method == "PUT" || request.method == "POST")
    one->headers["Content-Type"] = "application/octet-stream";
  one->request = std::move(request);
  one->take = std::move(take);
  Try(one);
}

void S3Requests::Cancel() {
  const std::lock_guard lock(mailbox_.mutex);
  mailbox_.cancelled = true;
  mailbox_.filled.notify_one();
}

Status S3Requests::WaitUntilBelow(size_t count) {
  const auto cancelled = [this] {
    return Status(Code::kCancelled, client_->config().endpoint + ": cancelled");
  };
  if (std::lock_guard lock(mailbox_.mutex); mailbox_.cancelled && failed_.ok()) failed_ = cancelled();
  while (failed_.ok() && open_.size() >= count) {
    std::vector<std::list<One>::iterator> due;
    auto next = Clock::time_point::max();
    for (auto one = open_.begin(); one != open_.end(); ++one) {
      if (!one->next_try) continue;
      if (*one->next_try <= Clock::now()) {
        due.push_back(one);
      } else {
        next = std::min(next, *one->next_try);
      }
    }
    for (const auto one : due) Try(one);
    std::vector<Answered> answers;
    {
      std::unique_lock lock(mailbox_.mutex);
      const auto filled = [&] { return mailbox_.cancelled || !mailbox_.answers.empty(); };
      if (!due.empty()) {
        // Look again at once: a try may have failed before it began.
      } else if (next == Clock::time_point::max()) {
        mailbox_.filled.wait(lock, filled);
      } else {
        mailbox_.filled.wait_until(lock, next, filled);
      }
      answers.swap(mailbox_.answers);
      if (mailbox_.cancelled) failed_ = cancelled();
    }
    for (Answered& answered : answers) {
      if (failed_.ok()) OnAnswer(std::move(answered));
    }
  }
  return failed_;
}

void S3Requests::Try(std::list<One>::iterator one) {
  if (client_->generation_ != ForkGuard::Generation()) {
    return Fail(*one,
                Status(Code::kUnavailable, "a forked child has no connection to a store of its parent's"));
  }
  one->next_try.reset();
  ++one->tries;
  Result<Credentials> credentials = client_->credentials_.Get();
  if (!credentials.ok()) return Fail(*one, credentials.status());
  one->credentials = *std::move(credentials);

  HttpRequest request;
  request.method = one->request.method;
  request.url = client_->config().Url(one->request.key, one->request.query);
  request.headers = one->headers;
  if (!one->credentials.token.empty()) request.headers["x-amz-security-token"] = one->credentials.token;
  request.body = one->request.body;
  request.into = one->request.into;
  request.max_text = one->request.max_text;
  const bool small = request.into.empty() && request.body.size() <= kMostOfSmall;
  request.turn = small ? HttpTurn::kFirst : one->tries > 1 ? HttpTurn::kBulkAgain : HttpTurn::kBulk;
  if (request.method == "POST") {
    request.timeout = client_->config().deadline;
  } else {
    request.least_rate = kLeastRate;
    if (small && !one->request.key.empty()) request.stall = ShortStall(one->tries, client_->config().stall);
  }
  request.signature =
      HttpSignature{one->credentials.key_id, one->credentials.secret, client_->config().region};
  client_->transfers_->Begin(this, std::move(request), [this, one](HttpAnswer answer) {
    std::lock_guard lock(mailbox_.mutex);
    mailbox_.answers.push_back({one, std::move(answer)});
    mailbox_.filled.notify_one();
  });
}

void S3Requests::OnAnswer(Answered answered) {
  const auto one = answered.one;
  if (one->request.method == "HEAD" && answered.answer.lost.ok() && answered.answer.status / 100 == 4) {
    one->request.method = "GET";
    one->request.max_text = 0;
    return Try(one);
  }
  const std::vector<int>& accept = one->request.accept;
  Judgement judgement = Judge(one->request.method, answered.answer);
  const bool accepted = judgement.next == Next::kDone && answered.answer.lost.ok() &&
                        std::count(accept.begin(), accept.end(), answered.answer.status) != 0;
  if (accepted) judgement = Judgement();
  if (judgement.next == Next::kRenew && !one->renewed) {
    one->renewed = true;
    const Result<Credentials> renewed = client_->credentials_.Renew(one->credentials);
    if (!renewed.ok()) return Fail(*one, renewed.status());
    return Try(one);
  }
  if (judgement.next == Next::kAgain) {
    const auto pause = std::max(PauseBefore(one->tries, Random(), client_->config()), judgement.pause);
    if (!one->deadline) one->deadline = Clock::now() + client_->config().deadline;
    const auto next_try = Clock::now() + pause;
    if (next_try <= *one->deadline) {
      one->next_try = next_try;
      return;
    }
    return Fail(*one, Status(judgement.status.code(),
                             judgement.status.message() + " (tried " + std::to_string(one->tries) +
                                 " times; a request is given up " +
                                 FormatDuration(client_->config().deadline) + " after its first failure)"));
  }
  if (!judgement.status.ok()) return Fail(*one, judgement.status);
  if (const Status status = one->take(std::move(answered.answer)); !status.ok()) return Fail(*one, status);
  open_.erase(one);
}

void S3Requests::Fail(const One& one, const Status& status) {
  const S3Config& config = client_->config();
  std::string message = config.Name(one.request.key) + ": " + one.request.method + " at " + config.endpoint +
                        ": " + status.message();
  if (status.code() == Code::kPermission && !one.credentials.source.empty()) {
    message += " (with the credentials of " + one.credentials.source + ")";
  }
  failed_ = Status(status.code(), message);
}

}  // namespace cairn
