#include "runtime/restore/exchange.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/bulk/receiver.h"
#include "runtime/bulk/sender.h"
#include "runtime/restore/arena.h"
#include "runtime/restore/block_reader.h"
#include "runtime/restore/parcels.h"
#include "runtime/restore/placement.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint16_t kParcel = 1;
constexpr uint16_t kReference = 2;  // where a parcel lies in the reader's arena, whose descriptor comes along
constexpr size_t kLanes = 2;
// Another rank's address comes when it has read the index and made its plan: as slow as the file system.
constexpr std::chrono::minutes kAddressBound{10};

// The payload of a reference: three numbers, as the machine has them, since both ends are on one.
struct Reference {
  uint32_t place, begin, bytes;
};

Status Torn(const Status& why) { return {Code::kUnavailable, why.message()}; }

class Exchange {
 public:
  Exchange(const ExchangePlan& plan, const std::vector<SourceFile>& files,
           const std::vector<Destination>& destinations, const ExchangeLinks& links,
           const LoadOptions& options)
      : plan_(plan),
        files_(files),
        place_(plan, destinations, options.direct_run_bytes),
        parcels_(plan, place_),
        links_(links),
        options_(options),
        rank_(static_cast<uint32_t>(links.self.rank)),
        arrived_(plan.receipts.size(), false) {}

  Result<LoadStats> Run() {
    const auto start = Clock::now();
    CAIRN_RETURN_IF_ERROR(parcels_.Check(files_));
    CAIRN_RETURN_IF_ERROR(place_.Check());
    CAIRN_RETURN_IF_ERROR(place_.Open());
    const Status done = Carry();
    if (!done.ok())
      links_.breaker->Break({Code::kCancelled, "the transfer is over"});  // a receiver may be passing on
    for (Lane& lane : lanes_) {
      lane.receiver.reset();  // before what its callbacks use
      links_.addresses->Withdraw(lane.purpose);
    }
    CAIRN_RETURN_IF_ERROR(done);
    CAIRN_RETURN_IF_ERROR(place_.Finish());
    stats_.needed_bytes = plan_.needed_bytes;
    stats_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return stats_;
  }

 private:
  struct Lane {
    std::string purpose;
    std::optional<BulkSender> sender;
    std::map<uint64_t, Arena> arenas;        // by reader; the receiver's thread's
    std::unique_ptr<BulkReceiver> receiver;  // nothing while this rank expects nothing on the lane
  };

  // A parcel on its way: its bytes, their hash if it is known, and where they lie in an arena, if they do.
  struct Parcel {
    std::span<const std::byte> bytes;
    std::optional<Hash128> hash;
    Arena* arena = nullptr;
    uint32_t place = 0;
  };

  Status Carry() {
    CAIRN_RETURN_IF_ERROR(OpenLanes());
    CAIRN_RETURN_IF_ERROR(ReadAll());
    return AwaitReceipts();
  }

  // ---- lanes ----

  // A parcel that `reader` has read reaches the ranks above it first, then those below.
  static size_t LaneTo(uint32_t rank, uint32_t reader) { return rank < reader ? 1 : 0; }

  BulkIdentity IdentityOn(const Lane& lane) const {
    BulkIdentity self = links_.self;
    self.purpose = lane.purpose;
    return self;
  }

  Status OpenLanes() {
    std::array<uint64_t, kLanes> longest{};
    for (const ExchangePlan::Receipt& receipt : plan_.receipts) {
      uint64_t& bytes = longest[LaneTo(rank_, receipt.reader)];
      bytes = std::max(bytes, receipt.bytes);
    }
    for (size_t i = 0; i < kLanes; ++i) {  // all of them first: what comes on one lane is passed on by either
      lanes_[i].purpose = links_.self.purpose + " lane " + std::to_string(i);
      lanes_[i].sender.emplace(
          IdentityOn(lanes_[i]),
          [this, purpose = lanes_[i].purpose](int rank) {
            return links_.addresses->Find(rank, purpose, *links_.breaker, kAddressBound);
          },
          links_.breaker);
    }
    for (size_t i = 0; i < kLanes; ++i) {
      if (longest[i] == 0) continue;
      Lane& lane = lanes_[i];
      BulkEvents events;
      events.place = [this](int, const BulkSubject& subject, uint32_t bytes) -> Result<std::span<std::byte>> {
        if (subject.type == kReference) return std::span<std::byte>();
        CAIRN_ASSIGN_OR_RETURN(const ExchangePlan::Receipt* const receipt, ReceiptOf(subject, bytes));
        return PlaceOf(*receipt);
      };
      events.take = [this](int, const BulkSubject& subject, std::span<const std::byte> parcel,
                           const Hash128& hash) {
        return Take(subject, {parcel, hash});
      };
      events.take_shared = [this](int, const BulkSubject& subject, std::span<const std::byte> payload,
                                  UniqueFd descriptor) {
        return TakeShared(subject, payload, std::move(descriptor));
      };
      events.lost = [this](int, const Status& why) { links_.breaker->Break(Torn(why)); };
      auto receiver = BulkReceiver::Open(
          IdentityOn(lane), static_cast<uint32_t>(std::max(longest[i], uint64_t{sizeof(Reference)})),
          links_.breaker, std::move(events));
      if (!receiver.ok()) return Torn(receiver.status().Annotate("take data of other ranks"));
      lane.receiver = *std::move(receiver);
      links_.addresses->Publish(lane.purpose, lane.receiver->addresses());
    }
    return OkStatus();
  }

  // To ranks of this node only where it lies, when it lies in an arena.
  Status SendOn(const std::vector<uint32_t>& to, const std::array<uint64_t, 3>& ids, const Parcel& parcel) {
    for (const uint32_t rank : to) {
      BulkSender& sender = *lanes_[LaneTo(rank, static_cast<uint32_t>(ids[2]))].sender;
      const auto near = parcel.arena != nullptr ? sender.Near(static_cast<int>(rank)) : Result<bool>(false);
      if (!near.ok()) return Torn(near.status());
      Status sent;
      if (*near) {
        const auto begin = parcel.bytes.data() - parcel.arena->At(parcel.place).data();
        const Reference reference{parcel.place, static_cast<uint32_t>(begin),
                                  static_cast<uint32_t>(parcel.bytes.size())};
        parcel.arena->Hold(parcel.place);
        sent = sender.Send(static_cast<int>(rank), {kReference, ids}, std::as_bytes(std::span(&reference, 1)),
                           {}, parcel.arena->fd());
        if (!sent.ok()) parcel.arena->Drop(parcel.place);
      } else {
        sent = sender.Send(static_cast<int>(rank), {kParcel, ids}, parcel.bytes, parcel.hash);
      }
      if (!sent.ok()) return Torn(sent);
    }
    return OkStatus();
  }

  // ---- reading ----

  Status ReadAll() {
    if (plan_.reads.empty()) return OkStatus();
    CAIRN_ASSIGN_OR_RETURN(const BlockBuffer buffer, BlockBuffer::Make());
    MakeArena();
    std::optional<BlockReader> reader;
    const std::vector<const ExchangePlan::Read*> reads = InOrder();
    for (size_t i = 0; i < reads.size(); ++i) {
      const ExchangePlan::Read& read = *reads[i];
      if (i == 0 || reads[i - 1]->file != read.file) {
        reader.emplace(files_[read.file], options_, stats_);
        std::vector<uint64_t> blocks;
        for (size_t j = i; j < reads.size() && reads[j]->file == read.file; ++j)
          blocks.push_back(reads[j]->block);
        CAIRN_RETURN_IF_ERROR(reader->Open(std::move(blocks)));
      }
      CAIRN_RETURN_IF_ERROR(links_.breaker->status());
      CAIRN_ASSIGN_OR_RETURN(const bool share, Shares(read));
      uint32_t place = 0;
      if (share) {
        CAIRN_ASSIGN_OR_RETURN(place, arena_->Take(*links_.breaker));
      }
      const Placement::Direct direct = share ? Placement::Direct() : place_.DirectOf(read);
      CAIRN_ASSIGN_OR_RETURN(
          const std::span<const std::byte> block,
          reader->ReadBlock(read.block, share ? arena_->At(place) : buffer.room(), direct.diversions));
      for (const ExchangePlan::Handover& handover : read.handovers) {
        Parcel parcel;
        if (share && parcels_.WhereItLies(handover, read.block, block)) parcel = {{}, {}, &*arena_, place};
        parcel.bytes = parcels_.Pack(handover, read.block, direct, block, &parcel_);
        CAIRN_RETURN_IF_ERROR(SendOn(handover.to, {read.file, read.block, rank_}, parcel));
      }
      CAIRN_RETURN_IF_ERROR(parcels_.FillOwn(read, direct, block));
      if (share) arena_->Drop(place);
    }
    return OkStatus();
  }

  // What others wait for first: it is on its way to them while the rest is read.
  std::vector<const ExchangePlan::Read*> InOrder() const {
    std::vector<const ExchangePlan::Read*> reads;
    for (const ExchangePlan::Read& read : plan_.reads) reads.push_back(&read);
    std::stable_partition(reads.begin(), reads.end(),
                          [](const auto* read) { return !read->handovers.empty(); });
    return reads;
  }

  // Where it pays; where the system gives none, everything is sent.
  void MakeArena() {
    uint64_t handed_on = 0;
    for (const ExchangePlan::Read& read : plan_.reads) {
      for (const ExchangePlan::Handover& handover : read.handovers) handed_on += handover.bytes;
    }
    if (handed_on < options_.share_bytes || handed_on == 0) return;
    if (auto arena = Arena::Make(); arena.ok()) arena_.emplace(*std::move(arena));
  }

  // Whether some parcel of the block goes to a rank of this node first.
  Result<bool> Shares(const ExchangePlan::Read& read) {
    if (!arena_) return false;
    for (const ExchangePlan::Handover& handover : read.handovers) {
      for (const uint32_t rank : handover.to) {
        const auto near = lanes_[LaneTo(rank, rank_)].sender->Near(static_cast<int>(rank));
        if (!near.ok()) return Torn(near.status());
        if (*near) return true;
      }
    }
    return false;
  }

  // ---- receiving: the receivers' threads ----

  Result<const ExchangePlan::Receipt*> ReceiptOf(const BulkSubject& subject, size_t bytes) const {
    const auto [file, block, reader] = subject.ids;
    const auto receipt = std::lower_bound(plan_.receipts.begin(), plan_.receipts.end(), std::tie(file, block),
                                          [](const ExchangePlan::Receipt& r, const auto& key) {
                                            return std::tuple<uint64_t, uint64_t>(r.file, r.block) < key;
                                          });
    if (receipt == plan_.receipts.end() || receipt->file != file || receipt->block != block ||
        receipt->reader != reader || receipt->bytes != bytes)
      return Status(Code::kInternal, "a parcel of " + std::to_string(bytes) + " bytes of file " +
                                         std::to_string(file) + ", block " + std::to_string(block) +
                                         " is not the one that this rank expects: the ranks' plans differ");
    return &*receipt;
  }

  // Where the parcel belongs, when that is in one stretch.
  std::span<std::byte> PlaceOf(const ExchangePlan::Receipt& receipt) const {
    if (receipt.regions.size() != 1) return {};
    return place_.PlaceOf(receipt.regions[0], receipt.block);
  }

  Status TakeShared(const BulkSubject& subject, std::span<const std::byte> payload, UniqueFd descriptor) {
    Reference reference;
    if (subject.type != kReference || payload.size() != sizeof(reference))
      return {Code::kInternal, "a message that this rank does not know"};
    std::memcpy(&reference, payload.data(), sizeof(reference));
    if (reference.place >= Arena::kPlaces || reference.begin > kBlockBytes ||
        reference.bytes > kBlockBytes - reference.begin)
      return {Code::kInternal, "a reference to what no arena holds"};
    const auto reader = static_cast<uint32_t>(subject.ids[2]);
    std::map<uint64_t, Arena>& arenas = lanes_[LaneTo(rank_, reader)].arenas;
    auto arena = arenas.find(reader);
    if (arena == arenas.end()) {
      CAIRN_ASSIGN_OR_RETURN(Arena opened, Arena::Open(std::move(descriptor)));
      arena = arenas.emplace(reader, std::move(opened)).first;
    }
    const auto bytes = arena->second.At(reference.place).subspan(reference.begin, reference.bytes);
    const Status taken = Take({kParcel, subject.ids}, {bytes, {}, &arena->second, reference.place});
    arena->second.Drop(reference.place);
    return taken;
  }

  Status Take(const BulkSubject& subject, const Parcel& parcel) {
    if (subject.type != kParcel) return {Code::kInternal, "a message that this rank does not know"};
    CAIRN_ASSIGN_OR_RETURN(const ExchangePlan::Receipt* const receipt,
                           ReceiptOf(subject, parcel.bytes.size()));
    const auto position = static_cast<size_t>(receipt - plan_.receipts.data());
    {
      std::lock_guard lock(mutex_);
      if (arrived_[position]) return {Code::kInternal, "a parcel came twice"};
      arrived_[position] = true;
    }
    CAIRN_RETURN_IF_ERROR(
        SendOn(receipt->to, subject.ids, parcel));  // before it is copied: others wait for it
    if (PlaceOf(*receipt).data() != parcel.bytes.data())
      CAIRN_RETURN_IF_ERROR(parcels_.Fill(*receipt, parcel.bytes));
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
  Placement place_;
  const Parcels parcels_;
  const ExchangeLinks& links_;
  const LoadOptions& options_;
  const uint32_t rank_;
  std::array<Lane, kLanes> lanes_;
  // The calling thread's.
  LoadStats stats_;
  std::vector<std::byte> parcel_;
  std::optional<Arena> arena_;  // of what this rank reads

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
