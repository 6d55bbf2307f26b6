// Carriers: one for each of several ranks that are threads of one process. As strict as MPI may be: a message is read from its
// sender's memory when its receiver asks for it a second time, and has gone then, not before. It has come when its sender, who knows that it has gone,
// is in the carrier once more.
#ifndef CAIRN_TESTS_RUNTIME_RESTORE_CARRIERS_H_
#define CAIRN_TESTS_RUNTIME_RESTORE_CARRIERS_H_

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/restore/carrier.h"

namespace cairn {

class Carriers {
 public:
  explicit Carriers(uint32_t count) {
    for (uint32_t rank = 0; rank < count; ++rank) carriers_.push_back(std::make_unique<One>(*this, rank));
  }

  Carrier* Of(uint32_t rank) { return carriers_[rank].get(); }

  // What was begun and is not over.
  size_t under_way() {
    const std::lock_guard lock(mutex_);
    size_t count = 0;
    for (const auto& carrier : carriers_) count += carrier->tickets.size();
    return count;
  }

 private:
  struct Ticket {
    std::span<const std::byte> sent;
    std::span<std::byte> room;
    std::shared_ptr<Ticket> met;    // of a receive: the message
    std::weak_ptr<Ticket> receive;  // of a message that has gone
    int tests = 0;                  // since then
    bool over = false, too_long = false;
    size_t bytes = 0;
  };
  using TicketPointer = std::shared_ptr<Ticket>;

  static void Go(const TicketPointer& receive) {
    const std::span<const std::byte> sent = receive->met->sent;
    receive->too_long = sent.size() > receive->room.size();
    if (!receive->too_long) std::copy(sent.begin(), sent.end(), receive->room.begin());
    receive->bytes = sent.size();
    receive->met->receive = receive;
    receive->met->over = true;
  }

  struct Line {  // from one rank to another
    std::deque<TicketPointer> sends, receives;
  };

  struct One : Carrier {
    One(Carriers& owner, uint32_t number) : all(owner), rank(number) {}

    Result<Carrier::Ticket> Send(uint32_t to, std::span<const std::byte> bytes) override {
      const std::lock_guard lock(all.mutex_);
      const auto ticket = std::make_shared<Carriers::Ticket>();
      Push();
      ticket->sent = bytes;
      all.lines_[{rank, to}].sends.push_back(ticket);
      return Begun(ticket, all.lines_[{rank, to}]);
    }
    Result<Carrier::Ticket> Receive(uint32_t from, std::span<std::byte> room) override {
      const std::lock_guard lock(all.mutex_);
      const auto ticket = std::make_shared<Carriers::Ticket>();
      Push();
      ticket->room = room;
      all.lines_[{from, rank}].receives.push_back(ticket);
      return Begun(ticket, all.lines_[{from, rank}]);
    }
    Result<std::optional<size_t>> Test(Carrier::Ticket number) override {
      const std::lock_guard lock(all.mutex_);
      Push();
      const TicketPointer ticket = tickets.at(number);
      if (ticket->met && ++ticket->tests == 2) Go(ticket);
      if (!ticket->over) return std::optional<size_t>();
      tickets.erase(number);
      if (const TicketPointer receive = ticket->receive.lock()) kept_back.push_back(receive);
      if (ticket->too_long) return Status(Code::kUnavailable, "a message is longer than the room for it");
      return std::optional<size_t>(ticket->bytes);
    }
    bool Drop(Carrier::Ticket number) override {
      const std::lock_guard lock(all.mutex_);
      for (auto& [ranks, line] : all.lines_) std::erase(line.receives, tickets.at(number));
      return tickets.erase(number) == 1;
    }

    void Progress() override {
      const std::lock_guard lock(all.mutex_);
      Push();
    }

    void Push() {
      for (const TicketPointer& receive : kept_back) receive->over = true;
      kept_back.clear();
    }

    Result<Carrier::Ticket> Begun(const TicketPointer& ticket, Line& line) {
      while (!line.sends.empty() && !line.receives.empty()) {
        line.receives.front()->met = line.sends.front();
        line.sends.pop_front();
        line.receives.pop_front();
      }
      tickets[next] = ticket;
      return next++;
    }

    Carriers& all;
    const uint32_t rank;
    std::map<Carrier::Ticket, TicketPointer> tickets;
    std::vector<TicketPointer> kept_back;
    Carrier::Ticket next = 0;
  };

  std::mutex mutex_;
  std::vector<std::unique_ptr<One>> carriers_;
  // Guarded by mutex_.
  std::map<std::pair<uint32_t, uint32_t>, Line> lines_;
};

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_RESTORE_CARRIERS_H_
