#include "planner/exchange_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace cairn {
namespace {

using Ranks = std::vector<uint32_t>;  // increasing

constexpr uint32_t kNone = UINT32_MAX;

bool Has(const Ranks& ranks, uint32_t rank) { return std::binary_search(ranks.begin(), ranks.end(), rank); }

// Rule 5: to whom `self`, a member or the reader, sends what `reader` read for `members`.
std::vector<uint32_t> NextHops(const Ranks& members, uint32_t reader, uint32_t self) {
  const auto behind = std::upper_bound(members.begin(), members.end(), reader);
  const size_t first = static_cast<size_t>(behind - members.begin());  // where the ring begins
  const size_t count = members.size() - (Has(members, reader) ? 1 : 0);
  const auto at = [&](size_t position) { return members[(first + position) % members.size()]; };
  std::vector<uint32_t> hops;
  const auto send = [&](size_t position) {
    if (position < count) hops.push_back(at(position));
  };
  if (self == reader) {
    send(0);
    return hops;
  }
  const auto own = std::lower_bound(members.begin(), members.end(), self) - members.begin();
  const size_t position = (static_cast<size_t>(own) + members.size() - first) % members.size();
  constexpr size_t kChain = ExchangePlan::kChain;
  if (position % kChain == 0) {  // these have the longer way before them
    send((2 * (position / kChain) + 1) * kChain);
    send((2 * (position / kChain) + 2) * kChain);
  }
  if ((position + 1) % kChain != 0) send(position + 1);
  return hops;
}

// A region, and who wants it.
struct Want {
  FileRegion region;
  uint64_t end = 0;              // region.end()
  const Ranks* ranks;            // the same list for the same ranks
  std::vector<uint32_t> pieces;  // of the rank that the plan is for
  uint32_t number = kNone;       // in the plan
};

// All wants of one saved box, and their union cut into disjoint regions.
struct Wants {
  std::vector<Want> wants;
  std::vector<FileRegion> distinct;
};

// What a block holds of a want.
struct Entry {
  Want* want = nullptr;
  uint64_t bytes = 0;
};

class Planner {
 public:
  Planner(const ExchangeInput& input, uint32_t rank) : input_(input), rank_(rank) {
    const size_t arrays = input.saved.layout().arrays.size();
    wanted_array_.resize(arrays, kNone);
    for (uint32_t a = 0; a < input.saved_array.size(); ++a) wanted_array_[input.saved_array[a]] = a;
  }

  Result<ExchangePlan> Plan() {
    CAIRN_RETURN_IF_ERROR(FindOwnBlocks());
    FindReadableBlocks();
    for (auto& [file, blocks] : blocks_) {
      std::sort(blocks.begin(), blocks.end());
      blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
      size_t first = 0;  // of the file's boxes that may meet the block
      for (const uint64_t block : blocks) PlanBlock(file, block, &first);
    }
    return std::move(plan_);
  }

 private:
  using BoxPlace = std::pair<uint32_t, size_t>;  // file, position in BoxesOfFile

  int64_t ElementBytes(uint32_t saved_array) const {
    return DTypeBytes(input_.saved.layout().arrays[saved_array].dtype);
  }

  Status CheckFile(uint32_t file) {
    if (!checked_.insert(file).second) return OkStatus();
    uint64_t end = 0;
    for (const SavedBox& saved : input_.saved.BoxesOfFile(file)) {
      if (saved.file_offset < end)
        return {Code::kDamage, "saved boxes of array '" + input_.saved.layout().arrays[saved.array].name +
                                   "' and another one overlap in file number " + std::to_string(file)};
      end = saved.file_offset + static_cast<uint64_t>(saved.box.elements() * ElementBytes(saved.array));
    }
    return OkStatus();
  }

  // The blocks that hold something of this rank's pieces.
  Status FindOwnBlocks() {
    plan_.pieces = input_.wanted.PiecesOf(rank_);
    for (uint32_t p = 0; p < plan_.pieces.size(); ++p)
      piece_of_[{plan_.pieces[p].array, plan_.pieces[p].ordinal}] = p;
    std::set<BoxPlace> met;
    for (const Piece& piece : plan_.pieces) {
      CAIRN_ASSIGN_OR_RETURN(const std::vector<SavedPart> parts,
                             input_.saved.BoxesIn(input_.saved_array[piece.array], piece.box));
      for (const SavedPart& part : parts) {
        CAIRN_RETURN_IF_ERROR(CheckFile(part.saved.file));
        const std::vector<SavedBox>& boxes = input_.saved.BoxesOfFile(part.saved.file);
        const auto it =
            std::lower_bound(boxes.begin(), boxes.end(), part.saved.file_offset,
                             [](const SavedBox& box, uint64_t offset) { return box.file_offset < offset; });
        met.emplace(part.saved.file, static_cast<size_t>(it - boxes.begin()));
      }
    }
    for (const auto& [file, box] : met) {
      for (const Want& want : WantsOf(file, box).wants) {
        if (Has(*want.ranks, rank_)) AddBlocks(file, want.region);
      }
    }
    return OkStatus();
  }

  // The blocks of the files that this rank may have to read for others.
  void FindReadableBlocks() {
    for (uint32_t file = 0; file < input_.readers.size(); ++file) {
      if (!Has(input_.readers[file], rank_)) continue;
      for (size_t box = 0; box < input_.saved.BoxesOfFile(file).size(); ++box) {
        for (const Want& want : WantsOf(file, box).wants) AddBlocks(file, want.region);
      }
    }
  }

  void AddBlocks(uint32_t file, const FileRegion& region) {
    std::vector<uint64_t>& blocks = blocks_[file];
    const uint64_t last = (region.end() - 1) / input_.block_bytes;
    for (uint64_t block = region.offset / input_.block_bytes; block <= last; ++block) {
      if (BytesIn(region, block) > 0) blocks.push_back(block);
    }
  }

  uint64_t BytesIn(const FileRegion& region, uint64_t block) const {
    const uint64_t begin = block * input_.block_bytes;
    return region.BytesBefore(begin + input_.block_bytes) - region.BytesBefore(begin);
  }

  // Rule 1.
  Wants& WantsOf(uint32_t file, size_t box) {
    auto [it, is_new] = wants_.try_emplace({file, box});
    Wants& out = it->second;
    if (!is_new) return out;
    const SavedBox& saved = input_.saved.BoxesOfFile(file)[box];
    const uint32_t array = wanted_array_[saved.array];
    if (array == kNone) return out;
    struct Taken {
      std::vector<Box> parts;  // of a holder's part of this box, what is taken from this box and no other
      Ranks ranks;
      std::vector<uint32_t> pieces;
    };
    std::map<Box, Taken> by_region;
    for (const Holder& holder : input_.wanted.HoldersOf(array, saved.box)) {
      auto [region, first] = by_region.try_emplace(holder.region);
      Taken& taken = region->second;
      if (first) {
        // Cannot fail: this very box holds all of the region.
        const auto parts = input_.saved.BoxesIn(saved.array, holder.region);
        for (const SavedPart& part : *parts) {
          if (part.saved.file == file && part.saved.file_offset == saved.file_offset)
            taken.parts.push_back(part.region);
        }
      }
      if (taken.ranks.empty() || taken.ranks.back() != holder.rank) taken.ranks.push_back(holder.rank);
      if (holder.rank == rank_) taken.pieces.push_back(piece_of_.at({array, holder.ordinal}));
    }
    std::map<Box, Taken> by_part;  // parts of different regions may be the same
    for (auto& [region, taken] : by_region) {
      for (const Box& part : taken.parts) {
        Taken& merged = by_part[part];
        Ranks ranks;
        std::set_union(merged.ranks.begin(), merged.ranks.end(), taken.ranks.begin(), taken.ranks.end(),
                       std::back_inserter(ranks));
        merged.ranks.swap(ranks);
        merged.pieces.insert(merged.pieces.end(), taken.pieces.begin(), taken.pieces.end());
      }
    }
    for (auto& [part, taken] : by_part) {
      const FileRegion region = FileRegion::Make(saved, part, ElementBytes(saved.array));
      out.wants.push_back({region, region.end(), &*rank_lists_.insert(std::move(taken.ranks)).first,
                           std::move(taken.pieces)});
    }
    std::sort(out.wants.begin(), out.wants.end(), [](const Want& a, const Want& b) {
      return std::tie(a.region.offset, a.region.box) < std::tie(b.region.offset, b.region.box);
    });
    std::vector<const Box*> boxes;
    for (const Want& want : out.wants) boxes.push_back(&want.region.box);
    for (const BoxIndex::Part& part : BoxIndex(boxes).CoverOf(saved.box).parts)
      out.distinct.push_back(FileRegion::Make(saved, part.region, ElementBytes(saved.array)));
    return out;
  }

  void PlanBlock(uint32_t file, uint64_t block, size_t* first) {
    const uint64_t begin = block * input_.block_bytes, end = begin + input_.block_bytes;
    const std::vector<SavedBox>& boxes = input_.saved.BoxesOfFile(file);
    const auto box_end = [&](const SavedBox& saved) {
      return saved.file_offset + static_cast<uint64_t>(saved.box.elements() * ElementBytes(saved.array));
    };
    while (*first < boxes.size() && box_end(boxes[*first]) <= begin) ++*first;
    std::vector<Entry> entries;
    uint64_t needed = 0;
    for (size_t box = *first; box < boxes.size() && boxes[box].file_offset < end; ++box) {
      Wants& wants = WantsOf(file, box);
      for (Want& want : wants.wants) {
        if (want.region.offset >= end || want.end <= begin) continue;
        if (const uint64_t bytes = BytesIn(want.region, block)) entries.push_back({&want, bytes});
      }
      for (const FileRegion& region : wants.distinct) {
        if (region.offset < end) needed += BytesIn(region, block);
      }
    }
    if (entries.empty()) return;

    // Entries with the same ranks are one class.
    std::map<const Ranks*, std::vector<uint32_t>> classes;
    for (uint32_t e = 0; e < entries.size(); ++e) classes[entries[e].want->ranks].push_back(e);
    std::vector<Group> groups;
    Ranks takers;  // that may read it
    if (classes.size() == 1) {
      takers = *classes.begin()->first;
      groups.push_back({takers, classes.begin()->second});
    } else {
      std::vector<std::pair<uint32_t, uint32_t>> wanted;  // rank, entry
      for (const auto& [ranks, members] : classes) {
        for (const uint32_t rank : *ranks) {
          for (const uint32_t e : members) wanted.emplace_back(rank, e);
        }
      }
      std::sort(wanted.begin(), wanted.end());
      std::map<std::vector<uint32_t>, Ranks> by_content;
      for (size_t i = 0; i < wanted.size();) {
        const uint32_t rank = wanted[i].first;
        std::vector<uint32_t> content;
        for (; i < wanted.size() && wanted[i].first == rank; ++i) content.push_back(wanted[i].second);
        by_content[std::move(content)].push_back(rank);
      }
      const auto bytes_of = [&](const std::vector<uint32_t>& content) {
        uint64_t bytes = 0;
        for (const uint32_t e : content) bytes += entries[e].bytes;
        return bytes;
      };
      uint64_t most = 0;
      for (const auto& [content, ranks] : by_content) most = std::max(most, bytes_of(content));
      for (auto& [content, ranks] : by_content) {
        if (2 * bytes_of(content) >= most) takers.insert(takers.end(), ranks.begin(), ranks.end());
        groups.push_back({std::move(ranks), content});
      }
      std::sort(takers.begin(), takers.end());
    }

    const uint32_t reader = ReaderOf(file, block, takers);
    if (reader == rank_) return AddRead(file, block, entries, groups, needed);
    for (const Group& group : groups) {
      if (!Has(group.ranks, rank_)) continue;
      ExchangePlan::Receipt receipt{file, block, reader, {}, 0, NextHops(group.ranks, reader, rank_)};
      receipt.regions = Regions(entries, group.entries, &receipt.bytes);
      plan_.receipts.push_back(std::move(receipt));
    }
  }

  struct Group {
    Ranks ranks;
    std::vector<uint32_t> entries;
  };

  // Rule 3.
  uint32_t ReaderOf(uint32_t file, uint64_t block, const Ranks& takers) const {
    Ranks able;
    const Ranks* candidates = &takers;
    if (file < input_.readers.size() && !input_.readers[file].empty()) {
      const Ranks& readers = input_.readers[file];
      std::set_intersection(takers.begin(), takers.end(), readers.begin(), readers.end(),
                            std::back_inserter(able));
      candidates = able.empty() ? &readers : &able;
    }
    return (*candidates)[(file + block) % candidates->size()];
  }

  void AddRead(uint32_t file, uint64_t block, const std::vector<Entry>& entries,
               const std::vector<Group>& groups, uint64_t needed) {
    ExchangePlan::Read read{file, block, {}, {}};
    for (const Group& group : groups) {
      const bool own = Has(group.ranks, rank_);
      uint64_t bytes = 0;
      std::vector<uint32_t> regions = Regions(entries, group.entries, &bytes);
      std::vector<uint32_t> to = NextHops(group.ranks, rank_, rank_);
      if (own) read.own = regions;
      if (!to.empty()) read.handovers.push_back({std::move(regions), bytes, std::move(to)});
    }
    plan_.reads.push_back(std::move(read));
    plan_.needed_bytes += needed;
  }

  // The numbers in the plan of these entries' regions.
  std::vector<uint32_t> Regions(const std::vector<Entry>& entries, const std::vector<uint32_t>& chosen,
                                uint64_t* bytes) {
    std::vector<uint32_t> numbers;
    for (const uint32_t e : chosen) {
      Want& want = *entries[e].want;
      if (want.number == kNone) {
        want.number = static_cast<uint32_t>(plan_.regions.size());
        plan_.regions.push_back(want.region);
        plan_.pieces_of.push_back(want.pieces);
      }
      numbers.push_back(want.number);
      *bytes += entries[e].bytes;
    }
    return numbers;
  }

  const ExchangeInput& input_;
  const uint32_t rank_;
  std::vector<uint32_t> wanted_array_;  // by saved array; kNone = nobody wants it
  std::map<std::pair<uint32_t, uint32_t>, uint32_t>
      piece_of_;                                      // array and ordinal → position in plan_.pieces
  std::map<uint32_t, std::vector<uint64_t>> blocks_;  // by file: those that concern this rank
  std::map<BoxPlace, Wants> wants_;
  std::set<Ranks> rank_lists_;
  std::set<uint32_t> checked_;  // files
  ExchangePlan plan_;
};

}  // namespace

Result<ExchangePlan> PlanExchange(const ExchangeInput& input, uint32_t rank) {
  return Planner(input, rank).Plan();
}

}  // namespace cairn
