#include "runtime/s3/transfers.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/control/loop.h"
#include "runtime/io/fork_guard.h"
#include "runtime/s3/curl.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long kBuffer = 512 << 10;  // of each connection, in either direction

constexpr uint64_t kMostOfError = 64 << 10;  // what a server says of a request that it refuses

// One exchange that is waiting or under way.
struct Transfer {
  const Curl* curl;
  const void* owner;
  HttpRequest request;
  Transfers::Done done;

  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  char error[CURL_ERROR_SIZE] = "";
  size_t piece = 0, within = 0;  // of request.into
  HttpAnswer answer;
  Status refused;  // why OnBody has cut the exchange
  curl_off_t moved = -1;
  Clock::time_point moved_at;

  bool Fills() const { return answer.status == 206 && !request.into.empty(); }
};

// libcurl's callbacks.

curl_socket_t OpenSocket(void*, curlsocktype, curl_sockaddr* address) {
  const int fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->protocol);
  if (fd < 0) return CURL_SOCKET_BAD;
  ForkGuard::Own(fd);
  return fd;
}

int CloseSocket(void*, curl_socket_t fd) {
  ForkGuard::Disown(fd);
  return close(fd);
}

size_t OnHeader(char* line, size_t, size_t bytes, void* data) {
  auto* transfer = static_cast<Transfer*>(data);
  const std::string_view text(line, bytes);
  if (text.substr(0, 5) == "HTTP/") {
    long status = 0;
    transfer->curl->easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    transfer->answer.status = static_cast<int>(status);
    transfer->answer.headers.clear();
  } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    std::string name(text.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(tolower(c)); });
    const size_t begin = std::min(text.find_first_not_of(" \t", colon + 1), text.size());
    const size_t end = text.find_last_not_of(" \t\r\n");
    transfer->answer.headers[name] = begin <= end ? text.substr(begin, end + 1 - begin) : "";
  }
  return bytes;
}

size_t OnBody(char* from, size_t, size_t bytes, void* data) {
  auto* transfer = static_cast<Transfer*>(data);
  HttpAnswer& answer = transfer->answer;
  if (!transfer->Fills()) {
    const uint64_t most = answer.status < 300 ? transfer->request.max_text : kMostOfError;
    const size_t room = most - answer.text.size();
    answer.text.append(from, std::min(bytes, room));
    if (bytes <= room) return bytes;
    answer.text_ended = false;
    return 0;
  }
  size_t left = bytes;
  while (left > 0 && transfer->piece < transfer->request.into.size()) {
    const HttpPiece& piece = transfer->request.into[transfer->piece];
    const size_t n = std::min(left, piece.bytes - transfer->within);
    if (piece.to != nullptr) memcpy(piece.to + transfer->within, from, n);
    from += n;
    left -= n;
    transfer->within += n;
    if (transfer->within == piece.bytes) {
      ++transfer->piece;
      transfer->within = 0;
    }
  }
  answer.received += bytes;
  if (left == 0) return bytes;
  transfer->refused = Status(Code::kDamage, "the answer is longer than what was asked for");
  return 0;
}

}  // namespace

// Constant after Start: all but what is said to belong to the loop's thread.
class Transfers::Impl {
 public:
  Impl(const Curl* curl, const Options& options, std::unique_ptr<Loop> loop)
      : curl_(curl), options_(options), loop_(std::move(loop)) {
    loop_->Run([this] { Open(); });
  }

  ~Impl() {
    if (InForkedChild()) {
      // What libcurl holds belongs to a thread that does not exist here.
      static_cast<void>(timer_.release());
      static_cast<void>(watch_.release());
      for (auto& [fd, watcher] : sockets_) static_cast<void>(watcher.release());
      return;
    }
    loop_->Run([this] { Close(); });
  }

  void Begin(const void* owner, HttpRequest request, Done done) {
    auto transfer = std::make_shared<Transfer>();
    transfer->curl = curl_;
    transfer->owner = owner;
    transfer->request = std::move(request);
    transfer->done = std::move(done);
    loop_->Post([this, transfer] {
      waiting_.push_back(transfer);
      StartWaiting();
    });
  }

  void Cancel(const void* owner) {
    loop_->Run([this, owner] {
      CancelIf([owner](const Transfer& transfer) { return transfer.owner == owner; });
      StartWaiting();
    });
  }

  bool InForkedChild() const { return generation_ != ForkGuard::Generation(); }

 private:
  // On the loop's thread.

  void Open() {
    timer_ = std::make_unique<Timer>(loop_.get(), [this] { Act(CURL_SOCKET_TIMEOUT, 0); });
    watch_ = std::make_unique<Timer>(loop_.get(), [this] { CutStalled(); });
    multi_ = curl_->multi_init();
    curl_->multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.connections));
    curl_->multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_->multi_setopt(
        multi_, CURLMOPT_SOCKETFUNCTION, +[](CURL*, curl_socket_t fd, int what, void* self, void*) -> int {
          static_cast<Impl*>(self)->WatchSocket(fd, what);
          return 0;
        });
    curl_->multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_->multi_setopt(
        multi_, CURLMOPT_TIMERFUNCTION, +[](CURLM*, long ms, void* self) -> int {
          Timer& timer = *static_cast<Impl*>(self)->timer_;
          if (ms < 0) {
            timer.Stop();
          } else {
            timer.Once(std::chrono::milliseconds(ms));
          }
          return 0;
        });
  }

  void Close() {
    CancelIf([](const Transfer&) { return true; });
    for (CURL* easy : idle_) curl_->easy_cleanup(easy);
    curl_->multi_cleanup(multi_);
    sockets_.clear();
    watch_.reset();
    timer_.reset();
  }

  void WatchSocket(curl_socket_t fd, int what) {
    if (what == CURL_POLL_REMOVE) {
      sockets_.erase(fd);
      return;
    }
    auto& watcher = sockets_[fd];
    if (!watcher) {
      watcher = std::make_unique<FdWatcher>(loop_.get(), fd, [this, fd](bool readable, bool writable) {
        Act(fd, (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0));
      });
    }
    watcher->Watch((what & CURL_POLL_IN) != 0, (what & CURL_POLL_OUT) != 0);
  }

  void Act(curl_socket_t fd, int events) {
    int running = 0;
    curl_->multi_socket_action(multi_, fd, events, &running);
    int left = 0;
    while (CURLMsg* message = curl_->multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Transfer* transfer = nullptr;
      curl_->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
      Finish(transfer, Outcome(*transfer, message->data.result));
    }
    StartWaiting();
  }

  // Why there is no whole answer, if there is none.
  Status Outcome(const Transfer& transfer, CURLcode code) const {
    if (code == CURLE_OK) return OkStatus();
    if (!transfer.refused.ok()) return transfer.refused;
    if (!transfer.answer.text_ended) return OkStatus();  // it is cut where it was meant to be
    const std::string why = transfer.error[0] != '\0' ? transfer.error : curl_->easy_strerror(code);
    switch (code) {
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_ISSUER_ERROR:
        return Status(
            Code::kPermission,
            why + " (a certificate of your own site's: name the file of its authority in AWS_CA_BUNDLE)");
      case CURLE_URL_MALFORMAT:
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_NOT_BUILT_IN:
        return Status(Code::kInvalid, why);
      case CURLE_OUT_OF_MEMORY:
        return Status(Code::kOutOfMemory, why);
      case CURLE_OPERATION_TIMEDOUT:
        return Status(Code::kTimeout, why);
      default:
        return Status(Code::kUnavailable, why);
    }
  }

  void StartWaiting() {
    while (!waiting_.empty() && active_.size() < static_cast<size_t>(options_.connections)) {
      std::shared_ptr<Transfer> transfer = std::move(waiting_.front());
      waiting_.pop_front();
      Transfer* raw = transfer.get();
      active_[raw] = std::move(transfer);
      StartOne(raw);
    }
    if (active_.empty()) {
      watch_->Stop();
    } else if (!watching_) {
      watch_->Every(std::max(options_.stall / 4, std::chrono::milliseconds(1)));
    }
    watching_ = !active_.empty();
  }

  void StartOne(Transfer* transfer) {
    if (idle_.empty()) {
      transfer->easy = curl_->easy_init();
    } else {
      transfer->easy = idle_.back();  // it remembers its TLS sessions
      idle_.pop_back();
    }
    if (transfer->easy == nullptr) return Finish(transfer, Status(Code::kOutOfMemory, "start a request"));
    transfer->moved_at = Clock::now();
    SetUp(*transfer);
    curl_->multi_add_handle(multi_, transfer->easy);
  }

  void SetUp(Transfer& transfer) {
    CURL* easy = transfer.easy;
    const auto set = [&](CURLoption option, auto value) { curl_->easy_setopt(easy, option, value); };
    const HttpRequest& request = transfer.request;
    set(CURLOPT_PRIVATE, &transfer);
    set(CURLOPT_ERRORBUFFER, transfer.error);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTP_VERSION,
        static_cast<long>(CURL_HTTP_VERSION_1_1));  // each transfer has a connection of its own
    set(CURLOPT_USERAGENT, "cairn");
    set(CURLOPT_OPENSOCKETFUNCTION, &OpenSocket);
    set(CURLOPT_CLOSESOCKETFUNCTION, &CloseSocket);
    set(CURLOPT_BUFFERSIZE, kBuffer);
    set(CURLOPT_UPLOAD_BUFFERSIZE, kBuffer);
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    // A server that refuses a large body can say so before it comes; one that knows nothing of that says nothing. An empty "Expect:", to do without,
    // would be signed as if it were sent.
    set(CURLOPT_EXPECT_100_TIMEOUT_MS, 100L);
    if (!options_.ca_file.empty()) set(CURLOPT_CAINFO, options_.ca_file.c_str());
    if (request.direct) set(CURLOPT_NOPROXY, "*");
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));

    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (request.method == "HEAD") set(CURLOPT_NOBODY, 1L);
    if (request.method == "PUT" || request.method == "POST") {
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
    }
    set(CURLOPT_HEADERFUNCTION, &OnHeader);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, &OnBody);
    set(CURLOPT_WRITEDATA, &transfer);

    for (const auto& [name, value] : request.headers) {
      transfer.headers = curl_->slist_append(transfer.headers, (name + ": " + value).c_str());
    }
    set(CURLOPT_HTTPHEADER, transfer.headers);
    if (request.signature) {
      set(CURLOPT_AWS_SIGV4, ("aws:amz:" + request.signature->region + ":s3").c_str());
      set(CURLOPT_USERNAME, request.signature->key_id.c_str());
      set(CURLOPT_PASSWORD, request.signature->secret.c_str());
    }
  }

  void CutStalled() {
    const Clock::time_point now = Clock::now();
    std::vector<std::pair<Transfer*, Status>> cut;
    for (auto& [raw, transfer] : active_) {
      curl_off_t up = 0, down = 0;
      long headers = 0, requests = 0;
      curl_->easy_getinfo(raw->easy, CURLINFO_SIZE_UPLOAD_T, &up);
      curl_->easy_getinfo(raw->easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
      curl_->easy_getinfo(raw->easy, CURLINFO_HEADER_SIZE, &headers);
      curl_->easy_getinfo(raw->easy, CURLINFO_REQUEST_SIZE, &requests);
      const curl_off_t moved = up + down + headers + requests;
      if (moved != raw->moved) {
        raw->moved = moved;
        raw->moved_at = now;
      }
      const auto quiet = std::chrono::duration_cast<std::chrono::milliseconds>(now - raw->moved_at);
      if (quiet >= options_.stall) {
        cut.emplace_back(
            raw, Status(Code::kTimeout, "no byte moved for " + std::to_string(quiet.count()) + " ms"));
      }
    }
    for (auto& [transfer, why] : cut) Finish(transfer, std::move(why));
    StartWaiting();
  }

  template <typename Wanted>
  void CancelIf(Wanted wanted) {
    const Status cancelled(Code::kCancelled, "given up");
    const auto mid = std::stable_partition(waiting_.begin(), waiting_.end(),
                                           [&](const auto& transfer) { return !wanted(*transfer); });
    std::vector<std::shared_ptr<Transfer>> never(std::make_move_iterator(mid),
                                                 std::make_move_iterator(waiting_.end()));
    waiting_.erase(mid, waiting_.end());
    std::vector<Transfer*> begun;
    for (auto& [raw, transfer] : active_) {
      if (wanted(*transfer)) begun.push_back(raw);
    }
    for (Transfer* transfer : begun) Finish(transfer, cancelled);
    for (const auto& transfer : never) {
      transfer->answer.lost = cancelled;
      transfer->done(std::move(transfer->answer));
    }
  }

  // Takes it off the loop and answers.
  void Finish(Transfer* raw, Status lost) {
    const auto at = active_.find(raw);
    const std::shared_ptr<Transfer> transfer = std::move(at->second);
    active_.erase(at);
    if (raw->easy != nullptr) {
      curl_->multi_remove_handle(multi_, raw->easy);
      curl_->easy_reset(raw->easy);
      idle_.push_back(raw->easy);
    }
    curl_->slist_free_all(raw->headers);
    raw->answer.lost = std::move(lost);
    raw->answer.into_filled = raw->Fills() && raw->piece == raw->request.into.size();
    raw->done(std::move(raw->answer));
  }

  const Curl* const curl_;
  const Options options_;
  const std::unique_ptr<Loop> loop_;
  const uint64_t generation_ = ForkGuard::Generation();

  // Loop thread only.
  CURLM* multi_ = nullptr;
  std::unique_ptr<Timer> timer_, watch_;
  bool watching_ = false;
  std::map<curl_socket_t, std::unique_ptr<FdWatcher>> sockets_;
  std::deque<std::shared_ptr<Transfer>> waiting_;
  std::map<Transfer*, std::shared_ptr<Transfer>> active_;
  std::vector<CURL*> idle_;
};

Transfers::Transfers(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Transfers::~Transfers() = default;

Result<std::unique_ptr<Transfers>> Transfers::Start(const Options& options) {
  CAIRN_ASSIGN_OR_RETURN(const Curl* curl, LoadCurl());
  CAIRN_ASSIGN_OR_RETURN(std::unique_ptr<Loop> loop, Loop::Start("cairn-s3"));
  return std::unique_ptr<Transfers>(new Transfers(std::make_unique<Impl>(curl, options, std::move(loop))));
}

void Transfers::Begin(const void* owner, HttpRequest request, Done done) {
  impl_->Begin(owner, std::move(request), std::move(done));
}

void Transfers::Cancel(const void* owner) { impl_->Cancel(owner); }

HttpAnswer Transfers::Exchange(HttpRequest request) {
  std::mutex mutex;
  std::condition_variable answered;
  std::optional<HttpAnswer> answer;
  if (impl_->InForkedChild()) {
    HttpAnswer none;
    none.lost = Status(Code::kUnavailable, "a forked child has no connection to a store of its parent's");
    return none;
  }
  Begin(&mutex, std::move(request), [&](HttpAnswer got) {
    std::lock_guard lock(mutex);
    answer = std::move(got);
    answered.notify_one();
  });
  std::unique_lock lock(mutex);
  answered.wait(lock, [&] { return answer.has_value(); });
  return *std::move(answer);
}

}  // namespace cairn
