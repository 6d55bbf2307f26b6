#include "planner/exchange_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace cairn {
namespace {

using Ranks = std::vector<uint32_t>;  // increasing

constexpr uint32_t kNone = UINT32_MAX;

bool Has(const Ranks& ranks, uint32_t rank) { return std::binary_search(ranks.begin(), ranks.end(), rank); }

// Rule 5: from whom `self`, a member or the reader, gets what `reader` read for `members`, and to whom it sends it.
struct Hops {
  uint32_t from;
  std::vector<uint32_t> to;
};

Hops HopsOf(const Ranks& members, uint32_t reader, uint32_t self) {
  const auto behind = std::upper_bound(members.begin(), members.end(), reader);
  const size_t first = static_cast<size_t>(behind - members.begin());  // where the ring begins
  const size_t count = members.size() - (Has(members, reader) ? 1 : 0);
  const auto at = [&](size_t position) { return members[(first + position) % members.size()]; };
  Hops hops{reader, {}};
  const auto send = [&](size_t position) {
    if (position < count) hops.to.push_back(at(position));
  };
  if (self == reader) {
    send(0);
    return hops;
  }
  const auto own = std::lower_bound(members.begin(), members.end(), self) - members.begin();
  const size_t position = (static_cast<size_t>(own) + members.size() - first) % members.size();
  constexpr size_t kChain = ExchangePlan::kChain;
  const size_t chain = position / kChain;
  if (position % kChain == 0) {  // these have the longer way before them
    if (chain > 0) hops.from = at((chain - 1) / 2 * kChain);
    send((2 * chain + 1) * kChain);
    send((2 * chain + 2) * kChain);
  } else {
    hops.from = at(position - 1);
  }
  if ((position + 1) % kChain != 0) send(position + 1);
  return hops;
}

// A region, and who wants it.
struct Want {
  FileRegion region;
  uint64_t end = 0;              // region.end()
  const Ranks* ranks = nullptr;  // mostly the same list for the same ranks
  std::vector<uint32_t> pieces;  // of the rank that the plan is for
  uint32_t number = kNone;       // in the plan
};

// All wants of one saved box.
struct Wants {
  std::vector<Want> wants;           // by place in the file
  std::vector<FileRegion> distinct;  // where they overlap: their union, cut into disjoint regions
};

// What a block holds of a want.
struct Entry {
  Want* want = nullptr;
  uint64_t bytes = 0;
};

// Ranks that want the same of a block.
struct Group {
  Ranks ranks;
  std::vector<uint32_t> entries;  // increasing
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
    std::vector<BoxPlace> met;
    std::vector<SavedPart> parts;
    for (const Piece& piece : plan_.pieces) {
      parts.clear();
      CAIRN_RETURN_IF_ERROR(input_.saved.FindBoxes(input_.saved_array[piece.array], piece.box, &parts));
      for (const SavedPart& part : parts) {
        CAIRN_RETURN_IF_ERROR(CheckFile(part.saved.file));
        const std::vector<SavedBox>& boxes = input_.saved.BoxesOfFile(part.saved.file);
        const auto it =
            std::lower_bound(boxes.begin(), boxes.end(), part.saved.file_offset,
                             [](const SavedBox& box, uint64_t offset) { return box.file_offset < offset; });
        met.emplace_back(part.saved.file, static_cast<size_t>(it - boxes.begin()));
      }
    }
    std::sort(met.begin(), met.end());
    met.erase(std::unique(met.begin(), met.end()), met.end());
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
    std::vector<std::optional<Wants>>& of_file = wants_[file];
    const std::vector<SavedBox>& boxes = input_.saved.BoxesOfFile(file);
    if (of_file.empty()) of_file.resize(boxes.size());
    std::optional<Wants>& wants = of_file[box];
    if (!wants) wants = FindWants(boxes[box]);
    return *wants;
  }

  Wants FindWants(const SavedBox& saved) {
    Wants out;
    const uint32_t array = wanted_array_[saved.array];
    if (array == kNone) return out;
    // The boxes of a rule are disjoint. Of others, not all of a region need be taken from this box.
    const bool saved_apart = input_.saved.layout().grids.Has(saved.array);
    const bool wanted_apart = input_.wanted.layout().grids.Has(array);
    std::vector<SavedPart> parts;
    const std::vector<Holding> holders = input_.wanted.HoldersOf(array, saved.box);
    out.wants.reserve(holders.size());
    for (const Holding& holding : holders) {
      std::vector<uint32_t> pieces;
      if (Has(*holding.ranks, rank_)) pieces.push_back(PositionOf(array, holding.ordinal));
      const auto add = [&](const Box& box) {
        const FileRegion region = FileRegion::Make(saved, box, ElementBytes(saved.array));
        out.wants.push_back({region, region.end(), holding.ranks, pieces});
      };
      if (saved_apart) {
        add(holding.region);
        continue;
      }
      parts.clear();
      // Cannot fail: this very box holds all of the region.
      if (!input_.saved.FindBoxes(saved.array, holding.region, &parts).ok()) continue;
      for (const SavedPart& part : parts) {
        if (part.saved.file == saved.file && part.saved.file_offset == saved.file_offset) add(part.region);
      }
    }
    std::sort(out.wants.begin(), out.wants.end(), [](const Want& a, const Want& b) {
      return std::tie(a.region.offset, a.region.box) < std::tie(b.region.offset, b.region.box);
    });
    if (wanted_apart) return out;
    JoinReplicas(&out.wants);
    std::vector<const Box*> boxes;
    for (const Want& want : out.wants) boxes.push_back(&want.region.box);
    for (const BoxIndex::Part& part : BoxIndex(boxes).CoverOf(saved.box).parts)
      out.distinct.push_back(FileRegion::Make(saved, part.region, ElementBytes(saved.array)));
    return out;
  }

  // Makes one want of those for the same region, which stand side by side.
  void JoinReplicas(std::vector<Want>* wants) {
    std::vector<Want> joined;
    for (size_t i = 0; i < wants->size();) {
      Want& first = joined.emplace_back(std::move((*wants)[i]));
      Ranks ranks = *first.ranks;
      for (++i; i < wants->size() && (*wants)[i].region.box == first.region.box; ++i) {
        const Want& next = (*wants)[i];
        ranks.insert(ranks.end(), next.ranks->begin(), next.ranks->end());
        first.pieces.insert(first.pieces.end(), next.pieces.begin(), next.pieces.end());
      }
      std::sort(first.pieces.begin(), first.pieces.end());
      std::sort(ranks.begin(), ranks.end());
      ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
      first.ranks = &*rank_lists_.insert(std::move(ranks)).first;
    }
    wants->swap(joined);
  }

  uint32_t PositionOf(uint32_t array, uint32_t ordinal) const {
    const auto it =
        std::lower_bound(plan_.pieces.begin(), plan_.pieces.end(), std::pair(array, ordinal),
                         [](const Piece& p, const auto& key) { return std::pair(p.array, p.ordinal) < key; });
    return static_cast<uint32_t>(it - plan_.pieces.begin());
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
    size_t counted = 0;  // entries
    for (size_t box = *first; box < boxes.size() && boxes[box].file_offset < end; ++box) {
      Wants& wants = WantsOf(file, box);
      for (Want& want : wants.wants) {
        if (want.region.offset >= end || want.end <= begin) continue;
        if (const uint64_t bytes = BytesIn(want.region, block)) entries.push_back({&want, bytes});
      }
      for (const FileRegion& region : wants.distinct) {
        if (region.offset < end) needed += BytesIn(region, block);
      }
      if (wants.distinct.empty()) {
        for (; counted < entries.size(); ++counted) needed += entries[counted].bytes;
      }
      counted = entries.size();
    }
    if (entries.empty()) return;

    // Entries that the same ranks want are one class; ranks with the same classes are a group.
    std::vector<Group> classes;
    std::unordered_map<const Ranks*, size_t> class_of;
    for (uint32_t e = 0; e < entries.size(); ++e) {
      const auto [it, is_new] = class_of.try_emplace(entries[e].want->ranks, classes.size());
      if (is_new) classes.push_back({*it->first, {}});
      classes[it->second].entries.push_back(e);
    }
    std::vector<Group> groups;
    Ranks takers;  // that may read it
    if (classes.size() == 1) {
      takers = classes[0].ranks;
      groups.swap(classes);
    } else {
      std::vector<uint64_t> wanted;  // rank, then class, in the lower half
      for (uint32_t c = 0; c < classes.size(); ++c) {
        for (const uint32_t rank : classes[c].ranks) wanted.push_back(uint64_t{rank} << 32 | c);
      }
      std::stable_sort(wanted.begin(), wanted.end());  // a few sorted runs
      std::map<std::vector<uint32_t>, Ranks> by_classes;
      std::vector<uint32_t> of_rank;
      for (size_t i = 0; i < wanted.size();) {
        const uint64_t rank = wanted[i] >> 32;
        of_rank.clear();
        for (; i < wanted.size() && wanted[i] >> 32 == rank; ++i)
          of_rank.push_back(static_cast<uint32_t>(wanted[i]));
        by_classes[of_rank].push_back(static_cast<uint32_t>(rank));
      }
      for (auto& [numbers, ranks] : by_classes) {
        Group& group = groups.emplace_back(Group{std::move(ranks), {}});
        for (const uint32_t c : numbers)
          group.entries.insert(group.entries.end(), classes[c].entries.begin(), classes[c].entries.end());
        std::sort(group.entries.begin(), group.entries.end());
      }
      const auto bytes_of = [&](const Group& group) {
        uint64_t bytes = 0;
        for (const uint32_t e : group.entries) bytes += entries[e].bytes;
        return bytes;
      };
      uint64_t most = 0;
      for (const Group& group : groups) most = std::max(most, bytes_of(group));
      for (const Group& group : groups) {
        if (2 * bytes_of(group) >= most) takers.insert(takers.end(), group.ranks.begin(), group.ranks.end());
      }
      std::sort(takers.begin(), takers.end());
    }

    const uint32_t reader = ReaderOf(file, block, takers);
    if (reader == rank_) return AddRead(file, block, entries, groups, needed);
    for (const Group& group : groups) {
      if (!Has(group.ranks, rank_)) continue;
      Hops hops = HopsOf(group.ranks, reader, rank_);
      ExchangePlan::Receipt receipt{file, block, reader, hops.from, {}, 0, std::move(hops.to)};
      receipt.regions = Regions(entries, group.entries, &receipt.bytes);
      plan_.receipts.push_back(std::move(receipt));
    }
  }

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
      std::vector<uint32_t> to = HopsOf(group.ranks, rank_, rank_).to;
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
  std::vector<uint32_t> wanted_array_;                // by saved array; kNone = nobody wants it
  std::map<uint32_t, std::vector<uint64_t>> blocks_;  // by file: those that concern this rank
  std::unordered_map<uint32_t, std::vector<std::optional<Wants>>>
      wants_;  // by file, by position in BoxesOfFile
  std::set<Ranks> rank_lists_;
  std::set<uint32_t> checked_;  // files
  ExchangePlan plan_;
};

}  // namespace

Result<ExchangePlan> PlanExchange(const ExchangeInput& input, uint32_t rank) {
  return Planner(input, rank).Plan();
}

}  // namespace cairn
