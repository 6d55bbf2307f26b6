// Meeting: ranks as threads of one process that hand data to each other.
#ifndef CAIRN_TESTS_RUNTIME_RESTORE_MEETING_H_
#define CAIRN_TESTS_RUNTIME_RESTORE_MEETING_H_

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/bulk/receiver.h"
#include "runtime/bulk/sender.h"
#include "runtime/restore/carried_exchange.h"
#include "runtime/restore/exchange.h"
#include "tests/runtime/restore/carriers.h"

namespace cairn {

// The address books and the carriers of all ranks, and what each rank needs to meet the others.
class Meeting {
 public:
  explicit Meeting(uint32_t count) : carriers(count), token_(Secret::Random()) {
    for (uint32_t r = 0; r < count; ++r) {
      books_.push_back(std::make_unique<AddressBook>([this, r](int to, std::string message) {
        ++questions;
        books_[static_cast<size_t>(to)]->OnMessage(static_cast<int>(r), message);
      }));
      breakers.push_back(*Breaker::Make());
      rounds_.push_back(*Breaker::MakePart(breakers.back()));
    }
  }

  ExchangeLinks LinksOf(uint32_t rank) {
    const BulkIdentity self{.rank = static_cast<int>(rank),
                            .key = "1.0.0",
                            .session = "main",
                            .token = token_,
                            .purpose = "restore 1"};
    return {self, books_[rank].get(), rounds_[rank]};
  }

  CarriedRound RoundOf(uint32_t rank) {
    CarriedRound round{.carrier = carriers.Of(rank), .life = breakers[rank], .round = rounds_[rank]};
    round.ready = [this] { ++came_; };
    round.all_ready = [this, meetings = size_t{0}]() mutable {
      if (came_ < (meetings + 1) * rounds_.size()) return false;
      ++meetings;
      return true;
    };
    round.moved = [this] { ++movements; };
    round.failed = [this](const Status&) { AbandonRound(); };
    return round;
  }

  // Once a rank is through with what it does over its carrier: returns when all are.
  void Leave(uint32_t rank) {
    for (++left_; left_ < rounds_.size() && breakers[rank]->status().ok(); std::this_thread::yield())
      carriers.Of(rank)->Progress();
  }

  void BreakAll(const Status& why) {
    for (const auto& breaker : breakers) breaker->Break(why);
  }

  // As the leader does when a rank has failed.
  void AbandonRound() {
    for (const auto& round : rounds_) round->Break({Code::kCancelled, "another rank has failed"});
  }

  std::vector<std::shared_ptr<Breaker>> breakers;
  std::atomic<int> questions{0}, movements{0};
  Carriers carriers;

 private:
  const Secret token_;
  std::vector<std::shared_ptr<Breaker>> rounds_;
  std::vector<std::unique_ptr<AddressBook>> books_;
  std::atomic<size_t> came_{0};  // to all meetings
  std::atomic<size_t> left_{0};
};

// A rank of a meeting that the test plays: it takes whatever others send it, and says what the test wants. `of` goes behind the purpose of its links.
class PlayedRank {
 public:
  PlayedRank(Meeting& meeting, uint32_t rank, const std::string& of) : links_(LinksOf(meeting, rank, of)) {
    BulkEvents events;
    events.take = [](int, const BulkSubject&, std::span<const std::byte>, const Hash128&) {
      return OkStatus();
    };
    events.take_shared = [](int, const BulkSubject&, std::span<const std::byte>, UniqueFd) {
      return OkStatus();
    };
    receiver_ = *BulkReceiver::Open(links_.self, 8 << 20, links_.breaker, std::move(events));
    links_.addresses->Publish(links_.self.purpose, receiver_->addresses());
  }

  Status Send(int to, const BulkSubject& subject, std::span<const std::byte> payload) {
    return sender_.Send(to, subject, payload);
  }

 private:
  static ExchangeLinks LinksOf(Meeting& meeting, uint32_t rank, const std::string& of) {
    ExchangeLinks links = meeting.LinksOf(rank);
    links.self.purpose += of;
    return links;
  }

  const ExchangeLinks links_;
  std::unique_ptr<BulkReceiver> receiver_;
  BulkSender sender_{links_.self,
                     [this](int to) {
                       return links_.addresses->Find(to, links_.self.purpose, *links_.breaker,
                                                     std::chrono::minutes(1));
                     },
                     links_.breaker};
};

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_RESTORE_MEETING_H_
