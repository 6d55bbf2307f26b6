#include "runtime/restore/carried_trade.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "runtime/restore/patience.h"

namespace cairn {
namespace {

// What goes to another rank, or comes from it.
struct Stream {
  std::vector<std::byte> bytes;
  uint64_t size = 0;
  bool size_has_passed = false;
  size_t passed = 0;                      // of the bytes
  std::optional<Carrier::Ticket> ticket;  // of the message that is under way
  size_t message_bytes = 0;

  bool over() const { return size_has_passed && passed == size && !ticket; }
};

class Trade {
 public:
  Trade(std::vector<std::vector<std::byte>> parts, uint32_t self, const CarriedRound& round)
      : self_(self), round_(round), streams_(std::make_shared<Streams>()) {
    streams_->in.resize(parts.size());
    streams_->out.resize(parts.size());
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      Stream& out = streams_->out[rank];
      out.bytes = std::move(parts[rank]);
      out.size = out.bytes.size();
    }
  }

  Result<std::vector<std::vector<std::byte>>> Run() {
    CAIRN_RETURN_IF_ERROR(round_.Meet());
    Status torn;
    try {
      torn = Carry();
    } catch (...) {  // no memory
      Abandon();
      throw;
    }
    if (!torn.ok()) {
      Abandon();
      return torn;
    }
    std::vector<std::vector<std::byte>> came;
    for (Stream& in : streams_->in) came.push_back(std::move(in.bytes));
    came[self_] = std::move(streams_->out[self_].bytes);
    return came;
  }

 private:
  struct Streams {  // by rank; what the carrier may use
    std::vector<Stream> in, out;
  };

  Status Carry() {
    for (Patience patience;;) {
      CAIRN_RETURN_IF_ERROR(round_.round->status());
      bool moved = false, over = true;
      for (uint32_t rank = 0; rank < streams_->in.size(); ++rank) {
        if (rank == self_) continue;
        CAIRN_RETURN_IF_ERROR(Advance(streams_->out[rank], rank, true, &moved));
        CAIRN_RETURN_IF_ERROR(Advance(streams_->in[rank], rank, false, &moved));
        over = over && streams_->out[rank].over() && streams_->in[rank].over();
      }
      if (over) return OkStatus();
      if (!moved) {
        patience.Wait();
        continue;
      }
      patience.Renew();
      round_.moved();
    }
  }

  Status Advance(Stream& stream, uint32_t rank, bool goes, bool* moved) {
    if (stream.ticket) {
      CAIRN_ASSIGN_OR_RETURN(const std::optional<size_t> bytes, round_.carrier->Test(*stream.ticket));
      if (!bytes) return OkStatus();
      *moved = true;
      stream.ticket.reset();
      if (!goes && *bytes != stream.message_bytes) {
        return {Code::kInternal, "a message of " + std::to_string(*bytes) + " bytes came from rank " +
                                     std::to_string(rank) + " in the place of one of " +
                                     std::to_string(stream.message_bytes)};
      }
      if (stream.size_has_passed) {
        stream.passed += stream.message_bytes;
      } else {
        stream.size_has_passed = true;
        stream.bytes.resize(stream.size);
      }
    }
    if (stream.over()) return OkStatus();
    auto message = std::as_writable_bytes(std::span(&stream.size, 1));
    if (stream.size_has_passed) {
      message = std::span(stream.bytes).subspan(stream.passed);
      message = message.first(std::min(message.size(), kTradeBytes));
    }
    stream.message_bytes = message.size();
    CAIRN_ASSIGN_OR_RETURN(
        stream.ticket, goes ? round_.carrier->Send(rank, message) : round_.carrier->Receive(rank, message));
    return OkStatus();
  }

  void Abandon() {
    for (const Stream& in : streams_->in) {
      if (in.ticket) round_.carrier->Drop(*in.ticket);
    }
    KeepForGood(streams_);
  }

  const uint32_t self_;
  const CarriedRound& round_;
  const std::shared_ptr<Streams> streams_;
};

}  // namespace

Result<std::vector<std::vector<std::byte>>> TradeCarried(std::vector<std::vector<std::byte>> parts,
                                                         uint32_t self, const CarriedRound& round) {
  return Trade(std::move(parts), self, round).Run();
}

}  // namespace cairn
