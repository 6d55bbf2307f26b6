#include "runtime/restore/carried_exchange.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "runtime/restore/block_reader.h"
#include "runtime/restore/parcels.h"
#include "runtime/restore/patience.h"
#include "runtime/restore/placement.h"

namespace cairn {
namespace {

constexpr size_t kReading = 3;
constexpr size_t kTaking = 3;
constexpr std::chrono::seconds kFailedStandstill{60};

// Why what is under way must be given up; OK while there is hope.
Status GiveUp(const CarriedRound& round, const Patience& patience, bool failed) {
  if (const Status gone = round.life->status(); !gone.ok()) return {Code::kUnavailable, gone.message()};
  if (!failed || patience.waited() < kFailedStandstill) return OkStatus();
  return {Code::kUnavailable, "a rank has failed, and nothing has moved for " +
                                  std::to_string(kFailedStandstill.count()) + " s since"};
}

// Reads of one kind, one after the other.
class ReadStream {
 public:
  ReadStream(const std::vector<SourceFile>& files, const LoadOptions& options, LoadStats& stats)
      : files_(files), options_(options), stats_(stats) {}

  void Add(const ExchangePlan::Read& read) { reads_.push_back(&read); }
  const ExchangePlan::Read* next() const { return next_ < reads_.size() ? reads_[next_] : nullptr; }

  Result<std::span<const std::byte>> Take(std::span<std::byte> room, std::span<const Diversion> diversions) {
    const ExchangePlan::Read& read = *reads_[next_];
    if (next_ == 0 || reads_[next_ - 1]->file != read.file) {
      reader_.emplace(files_[read.file], options_, stats_);
      std::vector<uint64_t> blocks;
      for (size_t i = next_; i < reads_.size() && reads_[i]->file == read.file; ++i)
        blocks.push_back(reads_[i]->block);
      CAIRN_RETURN_IF_ERROR(reader_->Open(std::move(blocks)));
    }
    ++next_;
    return reader_->ReadBlock(read.block, room, diversions);
  }

 private:
  const std::vector<SourceFile>& files_;
  const LoadOptions& options_;
  LoadStats& stats_;
  std::vector<const ExchangePlan::Read*> reads_;
  size_t next_ = 0;
  std::optional<BlockReader> reader_;
};

// A block that others wait for.
struct Reading {
  BlockBuffer buffer;
  std::vector<std::vector<std::byte>> packed;       // by handover, where it does not lie in one stretch
  std::vector<std::span<const std::byte>> parcels;  // by handover
  std::vector<Carrier::Ticket> sends;
  bool taken = false;  // until it has gone
};

// A parcel of this rank.
struct Taking {
  std::vector<std::byte> room;
  const ExchangePlan::Receipt* receipt = nullptr;  // nullptr: free
  std::optional<Carrier::Ticket> receive;          // until it has come
  bool placed = false, passed_on = false;
  std::vector<Carrier::Ticket> sends;
};

struct Turn {
  const ExchangePlan::Read* read = nullptr;        // one of these
  const ExchangePlan::Receipt* receipt = nullptr;  // two
  Reading* reading = nullptr;                      // once it is read
  Taking* taking = nullptr;                        // once it is being received

  std::pair<uint32_t, uint64_t> place() const {
    return read != nullptr ? std::pair(read->file, read->block) : std::pair(receipt->file, receipt->block);
  }
};

// What the carrier may use; kept for good when it is given up.
struct Buffers {
  std::vector<Reading> reading;
  std::array<Taking, kTaking> taking;
};

class Carried {
 public:
  Carried(const ExchangePlan& plan, const std::vector<SourceFile>& files,
          const std::vector<Destination>& destinations, const CarriedRound& round, const LoadOptions& options)
      : plan_(plan),
        files_(files),
        place_(plan, destinations, options.direct_run_bytes),
        parcels_(plan, place_),
        round_(round),
        for_others_(files, options, stats_),
        own_(files, options, stats_) {}

  Result<LoadStats> Run() {
    const auto start = std::chrono::steady_clock::now();
    CAIRN_RETURN_IF_ERROR(Prepare());
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
    CAIRN_RETURN_IF_ERROR(failed_);
    CAIRN_RETURN_IF_ERROR(place_.Finish());
    stats_.needed_bytes = plan_.needed_bytes;
    stats_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return stats_;
  }

 private:
  // All that can fail before others rely on this rank.
  Status Prepare() {
    CAIRN_RETURN_IF_ERROR(parcels_.Check(files_));
    CAIRN_RETURN_IF_ERROR(place_.Check());
    CAIRN_RETURN_IF_ERROR(place_.Open());
    size_t for_others = 0;
    uint64_t longest = 0;
    for (const ExchangePlan::Read& read : plan_.reads) {
      if (read.handovers.empty()) {
        own_.Add(read);
        continue;
      }
      ++for_others;
      for_others_.Add(read);
      turns_.push_back({.read = &read});
    }
    for (const ExchangePlan::Receipt& receipt : plan_.receipts) {
      longest = std::max(longest, receipt.bytes);
      turns_.push_back({.receipt = &receipt});
    }
    std::sort(turns_.begin(), turns_.end(),
              [](const Turn& a, const Turn& b) { return a.place() < b.place(); });
    for (size_t i = 0; i < std::min(kReading, for_others); ++i) {
      CAIRN_ASSIGN_OR_RETURN(BlockBuffer buffer, BlockBuffer::Make());
      buffers_->reading.push_back({.buffer = std::move(buffer)});
    }
    for (Taking& taking : buffers_->taking) taking.room.resize(longest);
    if (own_.next() != nullptr) {
      CAIRN_ASSIGN_OR_RETURN(BlockBuffer buffer, BlockBuffer::Make());
      own_buffer_.emplace(std::move(buffer));
    }
    return OkStatus();
  }

  // Not OK: what is under way cannot be waited for.
  Status Carry() {
    for (Patience patience;;) {
      if (const Status failed = round_.round->status(); !failed.ok()) Fail(failed, false);
      bool moved = false;
      CAIRN_RETURN_IF_ERROR(Settle(&moved));
      CAIRN_RETURN_IF_ERROR(BeginReceives(&moved));
      CAIRN_RETURN_IF_ERROR(BeginSends(&moved));
      PlaceArrived(&moved);
      if (!moved && failed_.ok()) moved = ReadOne();
      if (Over()) return OkStatus();
      if (moved) {
        patience.Renew();
        round_.moved();
        continue;
      }
      CAIRN_RETURN_IF_ERROR(GiveUp(round_, patience, !failed_.ok()));
      patience.Wait();
    }
  }

  void Fail(const Status& why, bool tell = true) {
    if (!failed_.ok()) return;
    failed_ = why;
    if (tell) round_.failed(why);
  }

  bool Over() const {
    if (next_receive_ < turns_.size() || next_send_ < turns_.size()) return false;
    for (const Reading& reading : buffers_->reading) {
      if (reading.taken) return false;
    }
    for (const Taking& taking : buffers_->taking) {
      if (taking.receipt != nullptr) return false;
    }
    return empty_sends_.empty() && (!failed_.ok() || own_.next() == nullptr);
  }

  // What has come to its end; and buffers that are free by that.
  Status Settle(bool* moved) {
    for (Taking& taking : buffers_->taking) {
      if (taking.receipt == nullptr) continue;
      if (taking.receive) {
        CAIRN_ASSIGN_OR_RETURN(const std::optional<size_t> bytes, round_.carrier->Test(*taking.receive));
        if (!bytes) continue;
        *moved = true;
        taking.receive.reset();
        if (*bytes == 0) {
          Fail({Code::kCancelled, "another rank has failed"});
        } else if (*bytes != taking.receipt->bytes) {
          Fail({Code::kInternal, "a parcel of " + std::to_string(*bytes) +
                                     " bytes came in the place of one of " +
                                     std::to_string(taking.receipt->bytes) + ": the ranks' plans differ"});
        }
      }
      CAIRN_RETURN_IF_ERROR(SettleSends(&taking.sends, moved));
      if (taking.placed && taking.passed_on && taking.sends.empty()) taking.receipt = nullptr;
    }
    for (Reading& reading : buffers_->reading) {
      CAIRN_RETURN_IF_ERROR(SettleSends(&reading.sends, moved));
      if (reading.taken && reading.parcels.empty() && reading.sends.empty()) reading.taken = false;
    }
    return SettleSends(&empty_sends_, moved);
  }

  Status SettleSends(std::vector<Carrier::Ticket>* sends, bool* moved) {
    for (size_t i = 0; i < sends->size();) {
      CAIRN_ASSIGN_OR_RETURN(const std::optional<size_t> over, round_.carrier->Test((*sends)[i]));
      if (!over) {
        ++i;
        continue;
      }
      sends->erase(sends->begin() + static_cast<std::ptrdiff_t>(i));
      *moved = true;
    }
    return OkStatus();
  }

  Status BeginReceives(bool* moved) {
    for (; next_receive_ < turns_.size(); ++next_receive_) {
      Turn& turn = turns_[next_receive_];
      if (turn.receipt == nullptr) continue;
      const auto free = std::find_if(buffers_->taking.begin(), buffers_->taking.end(),
                                     [](const Taking& taking) { return taking.receipt == nullptr; });
      if (free == buffers_->taking.end()) return OkStatus();
      CAIRN_ASSIGN_OR_RETURN(
          free->receive,
          round_.carrier->Receive(turn.receipt->from, std::span(free->room).first(turn.receipt->bytes)));
      free->receipt = turn.receipt;
      free->placed = free->passed_on = false;
      turn.taking = &*free;
      *moved = true;
    }
    return OkStatus();
  }

  Status BeginSends(bool* moved) {
    for (; next_send_ < turns_.size(); ++next_send_, *moved = true) {
      const Turn& turn = turns_[next_send_];
      if (turn.receipt != nullptr) {
        Taking* const taking = turn.taking;
        if (taking == nullptr || taking->receive) return OkStatus();
        CAIRN_RETURN_IF_ERROR(
            Send(turn.receipt->to, std::span(taking->room).first(turn.receipt->bytes), &taking->sends));
        taking->passed_on = true;
        continue;
      }
      Reading* const reading = turn.reading;
      if (reading == nullptr && failed_.ok()) return OkStatus();
      for (size_t i = 0; i < turn.read->handovers.size(); ++i) {
        CAIRN_RETURN_IF_ERROR(Send(turn.read->handovers[i].to,
                                   reading == nullptr ? std::span<const std::byte>() : reading->parcels[i],
                                   reading == nullptr ? &empty_sends_ : &reading->sends));
      }
      if (reading != nullptr) reading->parcels.clear();
    }
    return OkStatus();
  }

  Status Send(const std::vector<uint32_t>& to, std::span<const std::byte> parcel,
              std::vector<Carrier::Ticket>* sends) {
    for (const uint32_t rank : to) {
      CAIRN_ASSIGN_OR_RETURN(const Carrier::Ticket ticket,
                             round_.carrier->Send(rank, failed_.ok() ? parcel : parcel.first(0)));
      sends->push_back(ticket);
    }
    return OkStatus();
  }

  void PlaceArrived(bool* moved) {
    for (Taking& taking : buffers_->taking) {
      if (taking.receipt == nullptr || taking.receive || taking.placed) continue;
      taking.placed = *moved = true;
      if (!failed_.ok()) continue;
      const Status placed =
          parcels_.Fill(*taking.receipt, std::span(taking.room).first(taking.receipt->bytes));
      if (!placed.ok()) Fail(placed);
    }
  }

  // A block; of those for others first. false: there is none, or no room for it.
  bool ReadOne() {
    Status done;
    if (const ExchangePlan::Read* const read = for_others_.next(); read != nullptr) {
      const auto free = std::find_if(buffers_->reading.begin(), buffers_->reading.end(),
                                     [](const Reading& reading) { return !reading.taken; });
      if (free != buffers_->reading.end()) {
        done = ReadForOthers(*read, *free);
        if (!done.ok()) Fail(done);
        return true;
      }
    }
    if (own_.next() == nullptr) return false;
    done = ReadForItself(*own_.next());
    if (!done.ok()) Fail(done);
    return true;
  }

  Status ReadForOthers(const ExchangePlan::Read& read, Reading& reading) {
    CAIRN_ASSIGN_OR_RETURN(const std::span<const std::byte> block,
                           for_others_.Take(reading.buffer.room(), {}));
    reading.packed.resize(std::max(reading.packed.size(), read.handovers.size()));
    reading.parcels.clear();
    for (size_t i = 0; i < read.handovers.size(); ++i)
      reading.parcels.push_back(parcels_.Pack(read.handovers[i], read.block, {}, block, &reading.packed[i]));
    reading.taken = true;
    while (turns_[next_read_].read != &read) ++next_read_;
    turns_[next_read_].reading = &reading;
    return parcels_.FillOwn(read, {}, block);
  }

  Status ReadForItself(const ExchangePlan::Read& read) {
    const Placement::Direct direct = place_.DirectOf(read);
    CAIRN_ASSIGN_OR_RETURN(const std::span<const std::byte> block,
                           own_.Take(own_buffer_->room(), direct.diversions));
    return parcels_.FillOwn(read, direct, block);
  }

  // The carrier may go on using what is under way.
  void Abandon() {
    for (Taking& taking : buffers_->taking) {
      if (taking.receive) round_.carrier->Drop(*taking.receive);
    }
    KeepForGood(buffers_);
  }

  const ExchangePlan& plan_;
  const std::vector<SourceFile>& files_;
  Placement place_;
  const Parcels parcels_;
  const CarriedRound& round_;
  LoadStats stats_;
  ReadStream for_others_, own_;
  std::optional<BlockBuffer> own_buffer_;
  const std::shared_ptr<Buffers> buffers_ = std::make_shared<Buffers>();
  std::vector<Turn> turns_;
  size_t next_receive_ = 0, next_read_ = 0, next_send_ = 0;  // turns
  std::vector<Carrier::Ticket> empty_sends_;                 // of blocks that were not read
  Status failed_;                                            // here, or elsewhere
};

}  // namespace

Result<LoadStats> ExecuteCarried(const ExchangePlan& plan, const std::vector<SourceFile>& files,
                                 const std::vector<Destination>& destinations, const CarriedRound& round,
                                 const LoadOptions& options) {
  return Carried(plan, files, destinations, round, options).Run();
}

}  // namespace cairn
