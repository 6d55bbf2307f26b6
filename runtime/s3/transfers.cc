#include "runtime/s3/transfers.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/control/loop.h"
#include "runtime/io/fork_guard.h"
#include "runtime/s3/curl.h"
#include "runtime/s3/transfer.h"

namespace cairn {
namespace {

constexpr int kSmallConnections = 2;  // besides those for bulk
constexpr auto kWatch = std::chrono::milliseconds(1000);

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
    auto transfer = std::make_shared<Transfer>(Transfer{curl_, owner, std::move(request), std::move(done)});
    loop_->Post([this, transfer] {
      const auto later = [](HttpTurn turn, const auto& other) { return turn < other->request.turn; };
      waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), transfer->request.turn, later),
                      transfer);
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
    curl_->multi_setopt(multi_, CURLMOPT_MAXCONNECTS,
                        static_cast<long>(options_.connections + kSmallConnections));
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
      Finish(transfer, transfer->Outcome(message->data.result));
    }
    StartWaiting();
  }

  // Whether there is a connection for it.
  bool MayStart(const Transfer& transfer) const {
    const auto bulk = std::count_if(active_.begin(), active_.end(), [](const auto& active) {
      return active.first->request.turn != HttpTurn::kFirst;
    });
    const bool small = transfer.request.turn == HttpTurn::kFirst;
    return small ? active_.size() < static_cast<size_t>(options_.connections + kSmallConnections)
                 : bulk < options_.connections;
  }

  void StartWaiting() {
    while (!waiting_.empty() && MayStart(*waiting_.front())) {
      std::shared_ptr<Transfer> transfer = std::move(waiting_.front());
      waiting_.pop_front();
      Transfer* raw = transfer.get();
      active_[raw] = std::move(transfer);
      StartOne(raw);
    }
    if (active_.empty()) {
      watch_->Stop();
    } else if (!watching_) {
      watch_->Every(std::clamp(options_.stall / 4, std::chrono::milliseconds(1), kWatch));
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
    transfer->moved_at = std::chrono::steady_clock::now();
    transfer->SetUp(options_.ca_file);
    curl_->multi_add_handle(multi_, transfer->easy);
  }

  void CutStalled() {
    const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
    std::vector<std::pair<Transfer*, Status>> cut;
    for (auto& [raw, transfer] : active_) {
      const HttpRequest& request = raw->request;
      const auto stall = request.stall.count() > 0 ? request.stall : options_.stall;
      const auto enough = static_cast<curl_off_t>(request.least_rate) * stall.count() / 1000;
      const curl_off_t moved = raw->Moved();
      if (moved - raw->moved > enough) {
        raw->moved = moved;
        raw->moved_at = now;
      }
      const auto quiet = std::chrono::duration_cast<std::chrono::milliseconds>(now - raw->moved_at);
      if (quiet >= stall) {
        cut.emplace_back(raw, Status(Code::kTimeout, (enough > 0 ? "no more than " + std::to_string(enough) +
                                                                       " bytes moved in "
                                                                 : "no byte moved for ") +
                                                         std::to_string(quiet.count()) + " ms"));
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
