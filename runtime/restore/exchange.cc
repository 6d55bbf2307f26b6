#include "runtime/restore/exchange.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/bulk/receiver.h"
#include "runtime/bulk/sender.h"
#include "runtime/restore/block_reader.h"
#include "runtime/restore/stream_copy.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint16_t kParcel = 1;
constexpr size_t kLanes = 2;
// Another rank's address comes when it has read the index and made its plan: as slow as the file system.
constexpr std::chrono::minutes kAddressBound{10};

// The part of a region that a block holds, as bytes of the region's stream.
struct Stretch {
  Stretch(const FileRegion& region, uint64_t block)
      : begin(region.BytesBefore(block * kBlockBytes)), end(region.BytesBefore((block + 1) * kBlockBytes)) {}
  uint64_t bytes() const { return end - begin; }
  uint64_t begin, end;
};

Status Torn(const Status& why) { return {Code::kUnavailable, why.message()}; }

class Exchange {
 public:
  Exchange(const ExchangePlan& plan, const std::vector<SourceFile>& files,
           const std::vector<Destination>& destinations, const ExchangeLinks& links,
           const LoadOptions& options)
      : plan_(plan),
        files_(files),
        destinations_(destinations),
        links_(links),
        options_(options),
        rank_(static_cast<uint32_t>(links.self.rank)),
        arrived_(plan.receipts.size(), false) {}

  Result<LoadStats> Run() {
    const auto start = Clock::now();
    CAIRN_RETURN_IF_ERROR(Check());
    const Status done = Carry();
    for (Lane& lane : lanes_) {
      lane.receiver.reset();  // before what its callbacks use
      links_.addresses->Withdraw(lane.purpose);
    }
    CAIRN_RETURN_IF_ERROR(done);
    stats_.needed_bytes = plan_.needed_bytes;
    stats_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return stats_;
  }

 private:
  struct Lane {
    std::string purpose;
    std::optional<BulkSender> sender;
    std::unique_ptr<BulkReceiver> receiver;  // nothing while this rank expects nothing on the lane
  };

  Status Carry() {
    CAIRN_RETURN_IF_ERROR(OpenLanes());
    CAIRN_RETURN_IF_ERROR(ReadAll());
    return AwaitReceipts();
  }

  // That everything in the plan is there.
  Status Check() const {
    for (size_t r = 0; r < plan_.regions.size(); ++r) {
      if (plan_.regions[r].file >= files_.size())
        return {Code::kInternal, "the exchange plan reads file " + std::to_string(plan_.regions[r].file) +
                                     " of " + std::to_string(files_.size())};
      if (plan_.regions[r].end() > files_[plan_.regions[r].file].size_bytes)
        return {Code::kInternal,
                "the exchange plan reads behind the end of " + files_[plan_.regions[r].file].path};
      for (const uint32_t piece : plan_.pieces_of[r]) {
        if (piece >= destinations_.size() || !destinations_[piece].box.Contains(plan_.regions[r].box))
          return {Code::kInternal, "the exchange plan brings " + plan_.regions[r].box.ToString() +
                                       ", which no destination holds"};
      }
    }
    return OkStatus();
  }

  // ---- lanes ----

  // A parcel that `reader` has read reaches the ranks above it first, then those below.
  static size_t LaneTo(uint32_t rank, uint32_t reader) { return rank < reader ? 1 : 0; }

  Status OpenLanes() {
    std::array<uint64_t, kLanes> longest{};
    for (const ExchangePlan::Receipt& receipt : plan_.receipts) {
      uint64_t& bytes = longest[LaneTo(rank_, receipt.reader)];
      bytes = std::max(bytes, receipt.bytes);
    }
    for (size_t i = 0; i < kLanes; ++i) {
      Lane& lane = lanes_[i];
      BulkIdentity self = links_.self;
      self.purpose += " lane " + std::to_string(i);
      lane.purpose = self.purpose;
      lane.sender.emplace(
          self,
          [this, purpose = self.purpose](int rank) {
            return links_.addresses->Find(rank, purpose, *links_.breaker, kAddressBound);
          },
          links_.breaker);
      if (longest[i] == 0) continue;
      BulkEvents events;
      events.take = [this](int, const BulkSubject& subject, std::span<const std::byte> parcel,
                           const Hash128& hash) { return Take(subject, parcel, hash); };
      events.lost = [this](int, const Status& why) { links_.breaker->Break(Torn(why)); };
      auto receiver =
          BulkReceiver::Open(self, static_cast<uint32_t>(longest[i]), links_.breaker, std::move(events));
      if (!receiver.ok()) return Torn(receiver.status().Annotate("take data of other ranks"));
      lane.receiver = *std::move(receiver);
      links_.addresses->Publish(lane.purpose, lane.receiver->addresses());
    }
    return OkStatus();
  }

  Status SendOn(const std::vector<uint32_t>& to, uint32_t reader, const BulkSubject& subject,
                std::span<const std::byte> parcel, const std::optional<Hash128>& hash) {
    for (const uint32_t rank : to) {
      const Status sent =
          lanes_[LaneTo(rank, reader)].sender->Send(static_cast<int>(rank), subject, parcel, hash);
      if (!sent.ok()) return Torn(sent);
    }
    return OkStatus();
  }

  // ---- reading ----

  Status ReadAll() {
    if (plan_.reads.empty()) return OkStatus();
    CAIRN_ASSIGN_OR_RETURN(BlockBuffer buffer, BlockBuffer::Make());
    std::optional<BlockReader> reader;
    for (size_t i = 0; i < plan_.reads.size(); ++i) {
      const ExchangePlan::Read& read = plan_.reads[i];
      if (read.file >= files_.size()) return {Code::kInternal, "the exchange plan reads an unknown file"};
      if (i == 0 || plan_.reads[i - 1].file != read.file) {
        reader.emplace(files_[read.file], options_, buffer, stats_);
        CAIRN_RETURN_IF_ERROR(reader->Open());
      }
      CAIRN_RETURN_IF_ERROR(links_.breaker->status());
      CAIRN_ASSIGN_OR_RETURN(const std::span<const std::byte> block, reader->ReadBlock(read.block));
      CopyOwn(read, block);
      for (const ExchangePlan::Handover& handover : read.handovers) {
        const BulkSubject subject{kParcel, {read.file, read.block, rank_}};
        CAIRN_ASSIGN_OR_RETURN(const std::span<const std::byte> parcel, Pack(handover, read.block, block));
        CAIRN_RETURN_IF_ERROR(SendOn(handover.to, rank_, subject, parcel, {}));
      }
    }
    return OkStatus();
  }

  // From where the block begins to where the region's first element lies: often before the block.
  static int64_t OriginIn(uint64_t block, const FileRegion& region) {
    return static_cast<int64_t>(region.offset) - static_cast<int64_t>(block * kBlockBytes);
  }

  void CopyOwn(const ExchangePlan::Read& read, std::span<const std::byte> block) {
    for (const uint32_t number : read.own) {
      const FileRegion& region = plan_.regions[number];
      Fill(number, region.stride, block.data(), OriginIn(read.block, region), Stretch(region, read.block));
    }
  }

  // Puts a stretch of a region into every piece that wants it.
  void Fill(uint32_t number, const Dims& src_stride, const std::byte* src, int64_t src_origin,
            const Stretch& stretch) {
    const FileRegion& region = plan_.regions[number];
    for (const uint32_t piece : plan_.pieces_of[number]) {
      const Destination& to = destinations_[piece];
      int64_t origin = 0;
      for (int d = 0; d < region.box.rank(); ++d)
        origin += (region.box.offset[d] - to.box.offset[d]) * to.stride_bytes[d];
      CopyPart(StridedCopy::Make(region.box.extent, to.element_bytes, src_stride, to.stride_bytes), src,
               src_origin, to.data, origin, stretch.begin, stretch.end);
    }
  }

  Result<std::span<const std::byte>> Pack(const ExchangePlan::Handover& handover, uint64_t number,
                                          std::span<const std::byte> block) {
    if (handover.regions.size() == 1) {
      const FileRegion& region = plan_.regions[handover.regions[0]];
      const Stretch stretch(region, number);
      if (region.end() - region.offset == region.bytes()) {  // without gaps
        const int64_t at = OriginIn(number, region) + static_cast<int64_t>(stretch.begin);
        if (at < 0 || static_cast<uint64_t>(at) + stretch.bytes() > block.size())
          return Status(Code::kInternal, "the exchange plan hands on what its block does not hold");
        return block.subspan(static_cast<size_t>(at), stretch.bytes());
      }
    }
    parcel_.resize(std::max<size_t>(parcel_.size(), handover.bytes));
    uint64_t at = 0;
    for (const uint32_t r : handover.regions) {
      const FileRegion& region = plan_.regions[r];
      const Stretch stretch(region, number);
      const Dims dense = DenseStrides(region.box.extent, region.element_bytes);
      CopyPart(StridedCopy::Make(region.box.extent, region.element_bytes, region.stride, dense), block.data(),
               OriginIn(number, region), parcel_.data(),
               static_cast<int64_t>(at) - static_cast<int64_t>(stretch.begin), stretch.begin, stretch.end);
      at += stretch.bytes();
    }
    return std::span<const std::byte>(parcel_).first(at);
  }

  // ---- receiving: the receivers' threads ----

  Status Take(const BulkSubject& subject, std::span<const std::byte> parcel, const Hash128& hash) {
    const auto [file, block, reader] = subject.ids;
    const auto receipt = std::lower_bound(plan_.receipts.begin(), plan_.receipts.end(), std::tie(file, block),
                                          [](const ExchangePlan::Receipt& r, const auto& key) {
                                            return std::tuple<uint64_t, uint64_t>(r.file, r.block) < key;
                                          });
    if (subject.type != kParcel || receipt == plan_.receipts.end() || receipt->file != file ||
        receipt->block != block || receipt->reader != reader || receipt->bytes != parcel.size())
      return {Code::kInternal, "a parcel of " + std::to_string(parcel.size()) + " bytes of file " +
                                   std::to_string(file) + ", block " + std::to_string(block) +
                                   " is not the one that this rank expects: the ranks' plans differ"};
    const auto position = static_cast<size_t>(receipt - plan_.receipts.begin());
    {
      std::lock_guard lock(mutex_);
      if (arrived_[position]) return {Code::kInternal, "a parcel came twice"};
      arrived_[position] = true;
    }
    uint64_t at = 0;
    for (const uint32_t number : receipt->regions) {
      const FileRegion& region = plan_.regions[number];
      const Stretch stretch(region, block);
      Fill(number, DenseStrides(region.box.extent, region.element_bytes), parcel.data(),
           static_cast<int64_t>(at) - static_cast<int64_t>(stretch.begin), stretch);
      at += stretch.bytes();
    }
    CAIRN_RETURN_IF_ERROR(SendOn(receipt->to, receipt->reader, subject, parcel, hash));
    {
      std::lock_guard lock(mutex_);
      ++done_;
    }
    changed_.notify_all();
    return OkStatus();
  }

  Status AwaitReceipts() {
    std::unique_lock lock(mutex_);
    if (changed_.wait(lock, links_.breaker->token(), [this] { return done_ == arrived_.size(); }))
      return OkStatus();
    return links_.breaker->status();
  }

  const ExchangePlan& plan_;
  const std::vector<SourceFile>& files_;
  const std::vector<Destination>& destinations_;
  const ExchangeLinks& links_;
  const LoadOptions& options_;
  const uint32_t rank_;
  std::array<Lane, kLanes> lanes_;
  // The calling thread's.
  LoadStats stats_;
  std::vector<std::byte> parcel_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::vector<bool> arrived_;  // by receipt: has come, and is being placed and passed on
  size_t done_ = 0;            // receipts that are placed and passed on
};

}  // namespace

Result<LoadStats> ExecuteExchange(const ExchangePlan& plan, const std::vector<SourceFile>& files,
                                  const std::vector<Destination>& destinations, const ExchangeLinks& links,
                                  const LoadOptions& options) {
  return Exchange(plan, files, destinations, links, options).Run();
}

}  // namespace cairn
