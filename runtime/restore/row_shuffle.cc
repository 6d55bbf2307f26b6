#include "runtime/restore/row_shuffle.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "runtime/bulk/receiver.h"
#include "runtime/bulk/sender.h"
#include "runtime/restore/carried_trade.h"

namespace cairn {
namespace {

constexpr uint16_t kRows = 1;
constexpr uint16_t kEnd = 2;  // ids[0]: how many rows there were
// Others come as late as they have read their rows.
constexpr std::chrono::minutes kAddressBound{10};

class Shuffle {
 public:
  Shuffle(uint64_t row_bytes, uint32_t world_size, const ExchangeLinks& links)
      : row_bytes_(row_bytes), links_(links), came_(world_size), total_(world_size) {}

  // By rank: what there is for each; what each has for this one.
  Result<std::vector<std::vector<std::byte>>> Run(const BulkIdentity& self,
                                                  std::vector<std::vector<std::byte>> for_rank) {
    const Status carried = Carry(self, for_rank);
    receiver_.reset();  // before what its callbacks use
    links_.addresses->Withdraw(self.purpose);
    CAIRN_RETURN_IF_ERROR(carried);
    return std::move(came_);
  }

 private:
  static Status Torn(const Status& why) { return {Code::kUnavailable, why.message()}; }
  uint32_t rank() const { return static_cast<uint32_t>(links_.self.rank); }
  uint32_t world_size() const { return static_cast<uint32_t>(came_.size()); }

  Status Carry(const BulkIdentity& self, std::vector<std::vector<std::byte>>& for_rank) {
    came_[rank()] = std::move(for_rank[rank()]);
    total_[rank()] = came_[rank()].size() / row_bytes_;
    if (world_size() == 1) return OkStatus();
    CAIRN_RETURN_IF_ERROR(Open(self));
    CAIRN_RETURN_IF_ERROR(SendAll(self, for_rank));
    return AwaitAll();
  }

  Status Open(const BulkIdentity& self) {
    BulkEvents events;
    events.take = [this](int from, const BulkSubject& subject, std::span<const std::byte> payload,
                         const Hash128&) { return Take(static_cast<uint32_t>(from), subject, payload); };
    events.lost = [this](int, const Status& why) { links_.breaker->Break(Torn(why)); };
    auto receiver = BulkReceiver::Open(self, static_cast<uint32_t>(std::max(row_bytes_, kRowMessageBytes)),
                                       links_.breaker, std::move(events));
    if (!receiver.ok()) return Torn(receiver.status().Annotate("take rows of other ranks"));
    receiver_ = *std::move(receiver);
    links_.addresses->Publish(self.purpose, receiver_->addresses());
    return OkStatus();
  }

  Status SendAll(const BulkIdentity& self, const std::vector<std::vector<std::byte>>& for_rank) {
    BulkSender sender(
        self,
        [this, &self](int to) {
          return links_.addresses->Find(to, self.purpose, *links_.breaker, kAddressBound);
        },
        links_.breaker);
    const uint64_t message_bytes = std::max<uint64_t>(kRowMessageBytes / row_bytes_, 1) * row_bytes_;
    for (uint32_t i = 1; i < world_size(); ++i) {
      const uint32_t to = (rank() + i) % world_size();  // not all to the same at once
      std::span<const std::byte> left(for_rank[to]);
      const auto send = [&](const BulkSubject& subject, std::span<const std::byte> payload) {
        const Status sent = sender.Send(static_cast<int>(to), subject, payload);
        return sent.ok() ? sent : Torn(sent);
      };
      while (!left.empty()) {
        const std::span<const std::byte> part = left.first(std::min<size_t>(left.size(), message_bytes));
        CAIRN_RETURN_IF_ERROR(send({kRows, {}}, part));
        left = left.subspan(part.size());
      }
      CAIRN_RETURN_IF_ERROR(send({kEnd, {for_rank[to].size() / row_bytes_, 0, 0}}, {}));
    }
    return OkStatus();
  }

  Status Take(uint32_t from, const BulkSubject& subject, std::span<const std::byte> payload) {
    const std::lock_guard lock(mutex_);
    if (from >= world_size() || total_[from] || payload.size() % row_bytes_ != 0)
      return {Code::kInternal, "rank " + std::to_string(from) + " sent rows that are not expected"};
    if (subject.type == kRows) {
      came_[from].insert(came_[from].end(), payload.begin(), payload.end());
      return OkStatus();
    }
    if (subject.type != kEnd || subject.ids[0] != came_[from].size() / row_bytes_)
      return {Code::kInternal, "rows of rank " + std::to_string(from) + " are missing"};
    total_[from] = subject.ids[0];
    changed_.notify_all();
    return OkStatus();
  }

  Status AwaitAll() {
    std::unique_lock lock(mutex_);
    const auto all = [this] {
      return std::all_of(total_.begin(), total_.end(), [](const auto& total) { return total.has_value(); });
    };
    if (changed_.wait(lock, links_.breaker->token(), all)) return OkStatus();
    return links_.breaker->status();
  }

  const uint64_t row_bytes_;
  const ExchangeLinks& links_;
  std::unique_ptr<BulkReceiver> receiver_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // By rank; guarded by mutex_ while the receiver is there.
  std::vector<std::vector<std::byte>> came_;
  std::vector<std::optional<uint64_t>> total_;  // rows, once all have come
};

}  // namespace

Result<std::vector<std::byte>> ShuffleRows(const std::string& table, std::span<const std::byte> rows,
                                           uint64_t row_bytes, std::span<const uint32_t> owners,
                                           uint32_t world_size, const ExchangeLinks& links,
                                           const CarriedRound* carried) {
  std::vector<std::vector<std::byte>> for_rank(world_size);
  for (size_t i = 0; i < owners.size(); ++i) {
    const std::span<const std::byte> row = rows.subspan(i * row_bytes, row_bytes);
    for_rank[owners[i]].insert(for_rank[owners[i]].end(), row.begin(), row.end());
  }
  BulkIdentity self = links.self;
  self.purpose += " rows of " + table;
  CAIRN_ASSIGN_OR_RETURN(std::vector<std::vector<std::byte>> came,
                         carried != nullptr
                             ? TradeCarried(std::move(for_rank), static_cast<uint32_t>(self.rank), *carried)
                             : Shuffle(row_bytes, world_size, links).Run(self, std::move(for_rank)));
  std::vector<std::byte> out;
  for (std::vector<std::byte>& part : came) {
    out.insert(out.end(), part.begin(), part.end());
    part = {};
  }
  return out;
}

}  // namespace cairn
