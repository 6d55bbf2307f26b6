// ExchangePlan: how all ranks together load a checkpoint while each byte is read once. Says for one rank which blocks of which files it reads, what it
// keeps of them, what it hands to whom, and what it gets from whom. Pure; every rank computes its own part, and all parts fit together.
//
// 1. A *region* is what one piece wants of one saved box. Ranks that want the same region are replicas of it.
// 2. The *takers* of a block are the ranks that want a region of which a byte lies in the block. A block that nobody wants is not read.
// 3. Each other block has one *reader*, of those takers that want at least half as much of it as who wants most: of these n, number
//    (file + block) mod n. So each reads its equal share of whatever it wants, little is handed on of a block in which two pieces meet, and all
//    walk the files from their starts. Where only some ranks can read a file, the reader is one of those among them, or one of those.
// 4. Takers that want the same regions of a block are a *group*, and get the same parcel: what the block has of each region's stream, one after
//    the other. A rank is in at most one group of a block, so it gets at most one parcel of it.
// 5. The parcel goes from rank to rank, so that nobody sends to a thousand: the group, without the reader, stands in a ring by rank, and begins
//    behind the reader. The reader sends to the first only. Each passes on to the next; in groups of more than kChain, the first of each kChain
//    members also sends to the first of two later ones, as in a heap, so that a parcel is anywhere after few steps. Nobody sends a parcel to
//    more than three.
//
// A parcel goes up from rank to rank and drops at most once, from a rank above the reader to one below it: docs/design/data_plane.md says why
// this cannot get stuck.
//
// Cost: what concerns the rank: its pieces, the blocks that they meet, and what it reads of those for others; besides that, the boxes of a block cost
// as much as they are of different kinds (wanted_files.h), whatever their number.
#ifndef CAIRN_PLANNER_EXCHANGE_PLAN_H_
#define CAIRN_PLANNER_EXCHANGE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/file_region.h"
#include "planner/layout_index.h"

namespace cairn {

// Which of a rank's pieces each region fills: mostly one, so they stand in one list for all.
class RegionPieces {
 public:
  std::span<const uint32_t> operator[](size_t region) const {
    const size_t begin = region == 0 ? 0 : ends_[region - 1];
    return std::span(pieces_).subspan(begin, ends_[region] - begin);
  }
  size_t size() const { return ends_.size(); }

  // Of the last region.
  void Add(uint32_t piece) { pieces_.push_back(piece); }
  void EndRegion() { ends_.push_back(pieces_.size()); }

 private:
  std::vector<uint32_t> pieces_;
  std::vector<size_t> ends_;  // by region: position in pieces_
};

struct ExchangePlan {
  static constexpr size_t kChain = 64;

  // Regions are named by their position in `regions`; a parcel names them in the order of its bytes.
  struct Handover {
    std::vector<uint32_t> regions;
    uint64_t bytes = 0;
    std::vector<uint32_t> to;
  };
  struct Read {
    uint32_t file = 0;
    uint64_t block = 0;
    std::vector<uint32_t> own;  // regions of this rank
    std::vector<Handover> handovers;
  };
  struct Receipt {
    uint32_t file = 0;
    uint64_t block = 0;
    uint32_t reader = 0;
    uint32_t from = 0;              // who sends it: the reader, or who passes it on
    std::vector<uint32_t> regions;  // all of them this rank's own
    uint64_t bytes = 0;
    std::vector<uint32_t> to;  // to be passed on, as it is
  };

  std::vector<FileRegion> regions;
  RegionPieces pieces_of;         // by region: positions in `pieces`
  std::vector<Piece> pieces;      // of this rank, as LayoutIndex::PiecesOf names them
  std::vector<Read> reads;        // by file, then block
  std::vector<Receipt> receipts;  // by file, then block
  uint64_t needed_bytes =
      0;  // that anybody wants of the blocks in `reads`, each once: over all ranks, the unique bytes
  uint64_t looks =
      0;  // at boxes, kinds of boxes and regions, of which many are looked at several times: what it cost to make the plan
};

struct ExchangeInput {
  const SavedIndex& saved;
  const LayoutIndex& wanted;
  // By array of the wanted layout: its position in the saved one. Shape and type are the same.
  const std::vector<uint32_t>& saved_array;
  uint64_t block_bytes = 4 << 20;
  // By file: the ranks that can read it, increasing; none = whoever wants of it. Files behind the end: none.
  std::vector<std::vector<uint32_t>> readers = {};
};

// kDamage when no saved box holds a wanted element, or when saved boxes overlap in a file.
Result<ExchangePlan> PlanExchange(const ExchangeInput& input, uint32_t rank);

}  // namespace cairn

#endif  // CAIRN_PLANNER_EXCHANGE_PLAN_H_
