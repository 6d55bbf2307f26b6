#include "planner/exchange_plan.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "planner/hops.h"
#include "planner/rank_set.h"
#include "planner/wanted_files.h"

namespace cairn {
namespace {

uint64_t BytesBetween(const FileRegion& region, uint64_t begin, uint64_t end) {
  return region.BytesBefore(end) - region.BytesBefore(begin);
}

// The boxes of a column that meet a block, and of those the ones that lie in it whole. Positions in FileColumn::elements.
struct Met {
  PlacedColumn* placed;
  size_t begin, end;
  size_t whole_begin, whole_end;
};

// What a block holds of all wants of the same ranks.
struct Class {
  const Ranks* ranks;
  uint64_t bytes = 0;
  bool listed = false;  // whether the rank needs its entries
  std::vector<uint32_t>
      entries;  // what the block holds of each want: numbers of regions, in the order of the file
};

// Ranks that want the same of a block.
struct Group {
  RankSet ranks;
  std::vector<uint32_t> classes;
  uint64_t bytes = 0;
};

class Planner {
 public:
  Planner(const ExchangeInput& input, uint32_t rank)
      : input_(input), rank_(rank), files_(input.saved, input.wanted, input.saved_array, rank) {}

  Result<ExchangePlan> Plan() {
    CAIRN_RETURN_IF_ERROR(FindOwnBlocks());
    FindReadableBlocks();
    std::vector<uint32_t> files;
    for (const auto& [file, blocks] : blocks_) files.push_back(file);
    std::sort(files.begin(), files.end());
    for (const uint32_t file : files) {
      std::vector<uint64_t>& blocks = blocks_[file];
      std::sort(blocks.begin(), blocks.end());
      blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
      numbers_.clear();
      size_t first = 0;  // of the file's columns that may meet the block
      for (const uint64_t block : blocks) PlanBlock(file, block, &first);
    }
    plan_.looks += files_.looks();
    return std::move(plan_);
  }

 private:
  // The blocks that hold something of this rank's pieces.
  Status FindOwnBlocks() {
    plan_.pieces = input_.wanted.PiecesOf(rank_);
    first_piece_.resize(input_.wanted.layout().arrays.size() + 1, 0);
    for (const Piece& piece : plan_.pieces) ++first_piece_[piece.array + size_t{1}];
    for (size_t a = 1; a < first_piece_.size(); ++a) first_piece_[a] += first_piece_[a - 1];
    std::vector<SavedPart> parts;
    size_t regions = 0;
    for (const Piece& piece : plan_.pieces) {
      parts.clear();
      const uint32_t array = input_.saved_array[piece.array];
      CAIRN_RETURN_IF_ERROR(input_.saved.FindBoxes(array, piece.box, &parts));
      for (const SavedPart& part : parts)
        AddBlocks(part.saved.file, 0, FileRegion::Make(part.saved, part.region, files_.ElementBytes(array)));
      regions += parts.size();
    }
    plan_.regions.reserve(regions);
    for (const auto& [file, blocks] : blocks_) CAIRN_RETURN_IF_ERROR(files_.CheckFile(file));
    return OkStatus();
  }

  // The blocks of the files that this rank may have to read for others.
  void FindReadableBlocks() {
    for (uint32_t file = 0; file < input_.readers.size(); ++file) {
      if (!Has(input_.readers[file], rank_)) continue;
      for (PlacedColumn& placed : files_.ColumnsOf(file)) {
        for (const FileColumn::Element& element : files_.Open(placed).elements) {
          for (const Want& want : files_.WantsOf(placed, element.kind).wants)
            AddBlocks(file, placed.stretch.begin + element.offset, want.region);
        }
      }
    }
  }

  // `region` counts from byte `box_begin` of the file.
  void AddBlocks(uint32_t file, uint64_t box_begin, const FileRegion& region) {
    std::vector<uint64_t>& blocks = blocks_[file];
    const uint64_t first = (box_begin + region.offset) / input_.block_bytes;
    const uint64_t last = (box_begin + region.end() - 1) / input_.block_bytes;
    for (uint64_t block = first; block <= last; ++block) {
      if (!blocks.empty() && blocks.back() == block) continue;
      const uint64_t begin = block * input_.block_bytes;
      // Those with the first or the last element hold something.
      if (block == first || block == last ||
          BytesBetween(region, begin - box_begin, begin + input_.block_bytes - box_begin) > 0)
        blocks.push_back(block);
    }
  }

  // The boxes that meet the bytes from `begin` to `end` of the file.
  Met Meet(PlacedColumn& placed, uint64_t begin, uint64_t end) {
    const FileColumn& column = files_.Open(placed);
    const auto& elements = column.elements;
    const uint64_t from = begin - std::min(begin, placed.stretch.begin),
                   to = end - placed.stretch.begin;  // of the column
    const auto first =
        std::partition_point(elements.begin(), elements.end(),
                             [&](const FileColumn::Element& element) { return column.End(element) <= from; });
    const auto behind = std::partition_point(
        first, elements.end(), [&](const FileColumn::Element& element) { return element.offset < to; });
    Met met{&placed, static_cast<size_t>(first - elements.begin()),
            static_cast<size_t>(behind - elements.begin()), 0, 0};
    met.whole_begin = met.begin;
    met.whole_end = met.end;
    if (met.begin < met.end && first->offset < from) ++met.whole_begin;
    if (met.whole_begin < met.whole_end && column.End(*(behind - 1)) > to) --met.whole_end;
    return met;
  }

  // Calls visit(kind, count) for the boxes that lie in the block whole; a kind may come several times.
  template <typename Visit>
  void ForEachWholeKind(const Met& met, Visit visit) {
    const FileColumn& column = *met.placed->column;
    if (met.whole_end - met.whole_begin < column.kinds.size()) {
      plan_.looks += met.whole_end - met.whole_begin;
      for (size_t e = met.whole_begin; e < met.whole_end; ++e) visit(column.elements[e].kind, uint64_t{1});
      return;
    }
    plan_.looks += column.kinds.size();
    for (uint32_t kind = 0; kind < column.kinds.size(); ++kind) {
      const std::vector<uint32_t>& elements = column.kinds[kind].elements;
      const auto first = std::lower_bound(elements.begin(), elements.end(), met.whole_begin);
      const auto behind = std::lower_bound(first, elements.end(), met.whole_end);
      if (first != behind) visit(kind, static_cast<uint64_t>(behind - first));
    }
  }

  // Calls visit(want, bytes) for what one box that is not whole in the block has in it.
  template <typename Visit>
  void ForEachWantIn(const Met& met, size_t element, uint64_t block_begin, uint64_t block_end, Visit visit) {
    const FileColumn::Element& box = met.placed->column->elements[element];
    const std::vector<Want>& wants = files_.WantsOf(*met.placed, box.kind).wants;
    const uint64_t box_begin = met.placed->stretch.begin + box.offset;
    const uint64_t begin = block_begin - std::min(block_begin, box_begin), end = block_end - box_begin;
    auto want =
        std::partition_point(wants.begin(), wants.end(), [&](const Want& w) { return w.reach <= begin; });
    for (; want != wants.end() && want->region.offset < end; ++want) {
      ++plan_.looks;
      if (const uint64_t bytes = BytesBetween(want->region, begin, end)) visit(*want, bytes);
    }
  }

  template <typename Visit>
  static void ForEachCut(const Met& met, Visit visit) {
    for (size_t e = met.begin; e < met.whole_begin; ++e) visit(e);
    for (size_t e = met.whole_end; e < met.end; ++e) visit(e);
  }

  void PlanBlock(uint32_t file, uint64_t block, size_t* first) {
    const uint64_t begin = block * input_.block_bytes, end = begin + input_.block_bytes;
    std::vector<PlacedColumn>& columns = files_.ColumnsOf(file);
    while (*first < columns.size() && columns[*first].stretch.end <= begin) ++*first;
    std::vector<Met> met;
    for (size_t c = *first; c < columns.size() && columns[c].stretch.begin < end; ++c) {
      met.push_back(Meet(columns[c], begin, end));
      if (met.back().begin == met.back().end) met.pop_back();
    }
    std::vector<Class> classes;
    const uint64_t needed = FindClasses(met, begin, end, &classes);
    if (classes.empty()) return;
    RankSet takers{Ranks()};
    const std::vector<Group> groups = FindGroups(classes, &takers);
    const uint32_t reader = ReaderOf(file, block, takers);
    if (reader == rank_) {
      for (Class& one : classes) one.listed = true;
      ListEntries(file, met, begin, end, &classes);
      AddRead(file, block, classes, groups, needed);
      return;
    }
    for (const Group& group : groups) {
      if (!group.ranks.Has(rank_)) continue;
      for (const uint32_t c : group.classes) classes[c].listed = true;
      ListEntries(file, met, begin, end, &classes);
      Hops hops = HopsOf(group.ranks, reader, rank_);
      plan_.receipts.push_back(
          {file, block, reader, hops.from, RegionsOf(group, classes), group.bytes, std::move(hops.to)});
    }
  }

  // Wants of the same ranks are one class; Want::mark tells which, as long as this block is planned. Returns how many bytes of the block anybody
  // wants.
  uint64_t FindClasses(const std::vector<Met>& met, uint64_t begin, uint64_t end,
                       std::vector<Class>* classes) {
    uint64_t needed = 0;
    class_of_.clear();
    const auto add = [&](const Want& want, uint64_t bytes) {
      const auto [it, is_new] = class_of_.try_emplace(want.ranks, classes->size());
      if (is_new) classes->push_back({want.ranks});
      want.mark = it->second;
      (*classes)[it->second].bytes += bytes;
    };
    for (const Met& one : met) {
      ForEachWholeKind(one, [&](uint32_t kind, uint64_t count) {
        const Wants& wants = files_.WantsOf(*one.placed, kind);
        for (const Want& want : wants.wants) add(want, count * want.bytes);
        needed += count * wants.needed_bytes;
      });
      ForEachCut(one, [&](size_t e) {
        const FileColumn::Element& box = one.placed->column->elements[e];
        const std::vector<FileRegion>& distinct = files_.WantsOf(*one.placed, box.kind).distinct;
        ForEachWantIn(one, e, begin, end, [&](const Want& want, uint64_t bytes) {
          add(want, bytes);
          if (distinct.empty()) needed += bytes;
        });
        const uint64_t box_begin = one.placed->stretch.begin + box.offset;
        for (const FileRegion& region : distinct)
          needed += BytesBetween(region, begin - std::min(begin, box_begin), end - box_begin);
      });
    }
    return needed;
  }

  // Ranks with the same classes are a group. Of the longest list of ranks, those that are in no other class are not looked at one by one.
  std::vector<Group> FindGroups(const std::vector<Class>& classes, RankSet* takers) const {
    std::vector<Group> groups;
    if (classes.size() == 1) {
      *takers = RankSet(*classes[0].ranks, {});
      groups.push_back({*takers, {0}, classes[0].bytes});
      return groups;
    }
    const auto longest = static_cast<uint32_t>(
        std::max_element(classes.begin(), classes.end(),
                         [](const Class& a, const Class& b) { return a.ranks->size() < b.ranks->size(); }) -
        classes.begin());
    std::vector<uint64_t> others;  // rank, then class, in the lower half
    for (uint32_t c = 0; c < classes.size(); ++c) {
      for (const uint32_t rank : *classes[c].ranks) {
        if (c != longest) others.push_back(uint64_t{rank} << 32 | c);
      }
    }
    std::stable_sort(others.begin(), others.end());  // a few sorted runs
    const Ranks& most_ranks = *classes[longest].ranks;
    std::map<std::vector<uint32_t>, Ranks> by_classes;
    std::vector<uint32_t> of_rank;
    Ranks in_others;  // of the longest list
    for (size_t i = 0; i < others.size();) {
      const auto rank = static_cast<uint32_t>(others[i] >> 32);
      of_rank.clear();
      for (; i < others.size() && others[i] >> 32 == rank; ++i)
        of_rank.push_back(static_cast<uint32_t>(others[i]));
      if (Has(most_ranks, rank)) {
        of_rank.push_back(longest);
        in_others.push_back(rank);
      }
      by_classes[of_rank].push_back(rank);
    }
    uint64_t most = 0;
    for (auto& [numbers, ranks] : by_classes) {
      Group& group = groups.emplace_back(Group{RankSet(ranks), numbers});
      for (const uint32_t c : numbers) group.bytes += classes[c].bytes;
      most = std::max(most, group.bytes);
    }
    const bool rest = in_others.size() < most_ranks.size();
    if (rest) most = std::max(most, classes[longest].bytes);
    Ranks with;
    size_t g = 0;
    for (auto& [numbers, ranks] : by_classes) {
      if (2 * groups[g++].bytes >= most) with.insert(with.end(), ranks.begin(), ranks.end());
    }
    std::sort(with.begin(), with.end());
    if (rest && 2 * classes[longest].bytes >= most) {
      *takers = RankSet(most_ranks, in_others, std::move(with));
    } else {
      *takers = RankSet(std::move(with));
    }
    if (rest)
      groups.push_back({RankSet(most_ranks, std::move(in_others)), {longest}, classes[longest].bytes});
    return groups;
  }

  // Numbers what the block holds of the classes that are to be listed, in the order of the file.
  void ListEntries(uint32_t file, const std::vector<Met>& met, uint64_t begin, uint64_t end,
                   std::vector<Class>* classes) {
    const auto is_listed = [&](const Want& want) { return (*classes)[want.mark].listed; };
    for (const Met& one : met) {
      bool any = false;
      ForEachWholeKind(one, [&](uint32_t kind, uint64_t) {
        const std::vector<Want>& wants = files_.WantsOf(*one.placed, kind).wants;
        any = any || std::any_of(wants.begin(), wants.end(), is_listed);
      });
      const auto list = [&](size_t e, const Want& want, bool whole) {
        if (!is_listed(want)) return;
        (*classes)[want.mark].entries.push_back(NumberOf(file, *one.placed, e, want, whole));
      };
      const auto list_cut = [&](size_t e) {
        ForEachWantIn(one, e, begin, end,
                      [&](const Want& want, uint64_t bytes) { list(e, want, bytes == want.bytes); });
      };
      for (size_t e = one.begin; e < one.whole_begin; ++e) list_cut(e);
      for (size_t e = one.whole_begin; any && e < one.whole_end; ++e) {
        ++plan_.looks;
        for (const Want& want : files_.WantsOf(*one.placed, one.placed->column->elements[e].kind).wants)
          list(e, want, true);
      }
      for (size_t e = one.whole_end; e < one.end; ++e) list_cut(e);
    }
  }

  // The number of a region in the plan. One that does not lie in one block whole has the same in all.
  uint32_t NumberOf(uint32_t file, const PlacedColumn& placed, size_t element, const Want& want, bool whole) {
    const auto next = static_cast<uint32_t>(plan_.regions.size());
    if (!whole) {
      const auto [known, is_new] = numbers_.try_emplace({&want, element}, next);
      if (!is_new) return known->second;
    }
    const FileColumn::Element& box = placed.column->elements[element];
    FileRegion& region = plan_.regions.emplace_back(want.region);
    region.array = box.array;
    region.file = file;
    region.offset += placed.stretch.begin + box.offset;
    for (const uint32_t ordinal : want.ordinals)
      plan_.pieces_of.Add(PositionOf(files_.WantedArray(box.array), ordinal));
    plan_.pieces_of.EndRegion();
    return next;
  }

  uint32_t PositionOf(uint32_t array, uint32_t ordinal) const {
    const auto first = plan_.pieces.begin() + first_piece_[array],
               end = plan_.pieces.begin() + first_piece_[array + size_t{1}];
    const auto it = std::lower_bound(first, end, ordinal,
                                     [](const Piece& piece, uint32_t o) { return piece.ordinal < o; });
    return static_cast<uint32_t>(it - plan_.pieces.begin());
  }

  static std::vector<uint32_t> RegionsOf(const Group& group, const std::vector<Class>& classes) {
    std::vector<uint32_t> regions;
    for (const uint32_t c : group.classes)
      regions.insert(regions.end(), classes[c].entries.begin(), classes[c].entries.end());
    return regions;
  }

  // Rule 3.
  uint32_t ReaderOf(uint32_t file, uint64_t block, const RankSet& takers) const {
    if (file >= input_.readers.size() || input_.readers[file].empty())
      return takers.At((file + block) % takers.size());
    const Ranks& readers = input_.readers[file];
    Ranks able;
    std::copy_if(readers.begin(), readers.end(), std::back_inserter(able),
                 [&](uint32_t rank) { return takers.Has(rank); });
    const Ranks& candidates = able.empty() ? readers : able;
    return candidates[(file + block) % candidates.size()];
  }

  void AddRead(uint32_t file, uint64_t block, const std::vector<Class>& classes,
               const std::vector<Group>& groups, uint64_t needed) {
    ExchangePlan::Read read{file, block, {}, {}};
    for (const Group& group : groups) {
      std::vector<uint32_t> regions = RegionsOf(group, classes);
      std::vector<uint32_t> to = HopsOf(group.ranks, rank_, rank_).to;
      if (group.ranks.Has(rank_)) read.own = regions;
      if (!to.empty()) read.handovers.push_back({std::move(regions), group.bytes, std::move(to)});
    }
    plan_.reads.push_back(std::move(read));
    plan_.needed_bytes += needed;
  }

  const ExchangeInput& input_;
  const uint32_t rank_;
  WantedFiles files_;
  std::unordered_map<uint32_t, std::vector<uint64_t>> blocks_;  // by file: those that concern this rank
  std::vector<uint32_t> first_piece_;  // by wanted array, and one more: position in plan_.pieces
  std::unordered_map<const Ranks*, uint32_t> class_of_;         // of the block that is planned
  std::map<std::pair<const Want*, size_t>, uint32_t> numbers_;  // of regions that reach over a block's border
  ExchangePlan plan_;
};

}  // namespace

Result<ExchangePlan> PlanExchange(const ExchangeInput& input, uint32_t rank) {
  return Planner(input, rank).Plan();
}

}  // namespace cairn
