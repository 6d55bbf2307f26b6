#include "planner/writers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "planner/layout_builder.h"

namespace cairn {
namespace {

// Whether `b` goes on in dimension d where `a` ends, and is as `a` in all others.
bool GoesOn(const Box& a, const Box& b, int d) {
  for (int other = 0; other < a.rank(); ++other) {
    if (other != d && (a.offset[other] != b.offset[other] || a.extent[other] != b.extent[other]))
      return false;
  }
  return a.offset[d] + a.extent[d] == b.offset[d];
}

// Rule 1. In the order of the boxes.
std::vector<WriterPiece> Join(std::vector<WriterPiece> pieces) {
  const int dims = pieces.empty() ? 0 : pieces[0].box.rank();
  for (size_t before = pieces.size() + 1; pieces.size() < before;) {
    before = pieces.size();
    for (int d = dims - 1; d >= 0; --d) {
      // Those that are equal but for dimension d stand together, by their places in it.
      const auto key = [d](const WriterPiece& piece) {
        Box others = piece.box;
        others.offset[d] = others.extent[d] = 0;
        return std::tuple(others, piece.box.offset[d], piece.box.extent[d]);
      };
      std::sort(pieces.begin(), pieces.end(),
                [&](const WriterPiece& a, const WriterPiece& b) { return key(a) < key(b); });
      std::vector<WriterPiece> joined;
      for (WriterPiece& piece : pieces) {
        if (joined.empty() || !GoesOn(joined.back().box, piece.box, d)) {
          joined.push_back(std::move(piece));
          continue;
        }
        joined.back().box.extent[d] += piece.box.extent[d];
        std::move(piece.parts.begin(), piece.parts.end(), std::back_inserter(joined.back().parts));
      }
      pieces.swap(joined);
    }
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const WriterPiece& a, const WriterPiece& b) { return a.box < b.box; });
  return pieces;
}

Status CheckNumbers(std::span<const uint32_t> writer_of, uint32_t world_size) {
  uint32_t next = 0;
  for (const uint32_t writer : writer_of) {
    if (writer > next) return {Code::kInvalid, "writers are not numbered by their lowest ranks"};
    next = std::max(next, writer + 1);
  }
  if (writer_of.size() == world_size) return OkStatus();
  return {Code::kInvalid, "writers of " + std::to_string(writer_of.size()) + " ranks are given for " +
                              std::to_string(world_size)};
}

}  // namespace

Result<Writers> Writers::Make(const Layout& layout, std::vector<uint32_t> writer_of) {
  Writers writers(layout, std::move(writer_of));
  if (writers.writer_of_.empty()) return writers;
  CAIRN_RETURN_IF_ERROR(CheckNumbers(writers.writer_of_, layout.world_size));
  CAIRN_ASSIGN_OR_RETURN(LayoutBuilder builder, LayoutBuilder::Make(layout.arrays));
  const uint32_t count = *std::max_element(writers.writer_of_.begin(), writers.writer_of_.end()) + 1;
  for (uint32_t writer = 0; writer < count; ++writer) {
    WriterPieces pieces(writers, writer);
    std::vector<uint32_t> list_of;
    std::vector<std::vector<Box>> lists;
    std::map<uint32_t, uint32_t> list_of_rule;
    for (uint32_t array = 0; array < layout.arrays.size(); ++array) {
      const auto next = static_cast<uint32_t>(lists.size());
      list_of.push_back(layout.grids.Has(array)
                            ? list_of_rule.emplace(layout.grids.rule_of[array], next).first->second
                            : next);
      if (list_of.back() != next) continue;
      std::vector<Box>& boxes = lists.emplace_back();
      for (const WriterPiece& piece : pieces.Of(array)) boxes.push_back(piece.box);
    }
    CAIRN_RETURN_IF_ERROR(builder.AddRank(list_of, lists));
  }
  CAIRN_ASSIGN_OR_RETURN(writers.joined_, std::move(builder).Finish());
  return writers;
}

std::vector<uint32_t> Writers::RanksOf(uint32_t writer) const {
  if (writer_of_.empty()) return {writer};
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; rank < writer_of_.size(); ++rank) {
    if (writer_of_[rank] == writer) ranks.push_back(rank);
  }
  return ranks;
}

WriterPieces::WriterPieces(const Writers& writers, uint32_t writer)
    : writers_(writers), ranks_(writers.RanksOf(writer)) {}

const std::vector<WriterPiece>& WriterPieces::Of(uint32_t array) {
  const GridTable& grids = writers_.ranks_->grids;
  const bool has_rule = grids.Has(array);
  auto& known = has_rule ? by_rule_ : by_array_;
  const uint32_t key = has_rule ? grids.rule_of[array] : array;
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, Find(array)).first->second;
}

std::vector<WriterPiece> WriterPieces::Find(uint32_t array) const {
  const Layout& layout = *writers_.ranks_;
  std::vector<WriterPiece> held;  // by rank, then by ordinal
  const bool alone = ranks_.size() == 1;
  const auto add = [&](uint32_t rank, uint32_t ordinal, const Box& box) {
    if (alone || !box.empty()) held.push_back({box, {{box, {{rank, ordinal}}}}});
  };
  for (const uint32_t rank : ranks_) {
    if (layout.grids.Has(array)) {
      const Grid grid(layout.grids, layout.grids.rule_of[array]);
      auto digits = grid.DigitsOf(rank);
      for (uint32_t i = 0; digits && i < grid.pieces_per_rank(); ++i) {
        grid.SetOrdinal(i, &*digits);
        add(rank, i, grid.BoxAt(*digits));
      }
      continue;
    }
    auto piece =
        std::lower_bound(layout.pieces.begin(), layout.pieces.end(), std::pair(array, rank),
                         [](const Piece& p, const auto& key) { return std::pair(p.array, p.rank) < key; });
    for (; piece != layout.pieces.end() && piece->array == array && piece->rank == rank; ++piece)
      add(rank, piece->ordinal, piece->box);
  }
  if (alone) return held;

  std::stable_sort(held.begin(), held.end(),
                   [](const WriterPiece& a, const WriterPiece& b) { return a.box < b.box; });
  std::vector<WriterPiece> different;
  for (WriterPiece& piece : held) {
    if (different.empty() || !(different.back().box == piece.box)) {
      different.push_back(std::move(piece));
      continue;
    }
    std::vector<WriterPiece::Holder>& holders = different.back().parts[0].holders;
    const WriterPiece::Holder& holder = piece.parts[0].holders[0];
    if (holders.back().rank != holder.rank) holders.push_back(holder);
  }
  return Join(std::move(different));
}

CopiedRows RowsOfHolder(uint64_t holder, uint64_t holders, uint64_t turn, int64_t rows, uint64_t bytes,
                        uint64_t min_split_bytes) {
  const uint64_t most = min_split_bytes == 0 ? holders : bytes / min_split_bytes;
  const uint64_t parts = std::max<uint64_t>(std::min({holders, static_cast<uint64_t>(rows), most}), 1);
  const uint64_t part = (holder + holders - turn % holders) % holders;
  if (part >= parts) return {};
  const auto border = [&](uint64_t p) {
    return static_cast<int64_t>(static_cast<uint64_t>(rows) * p / parts);
  };
  return {border(part), border(part + 1) - border(part)};
}

std::vector<uint32_t> ShareOutFiles(std::span<const std::string> nodes, uint64_t files) {
  std::map<std::string, std::vector<uint32_t>> ranks_on;
  std::vector<const std::string*> in_order;  // nodes, by their lowest ranks
  for (uint32_t rank = 0; rank < nodes.size(); ++rank) {
    std::vector<uint32_t>& ranks = ranks_on[nodes[rank]];
    if (ranks.empty()) in_order.push_back(&nodes[rank]);
    ranks.push_back(rank);
  }
  const uint64_t all = nodes.size();
  files = std::min(files, all);
  std::vector<uint32_t> first(all);  // by rank: the lowest rank of its writer
  uint64_t before = 0;               // ranks on earlier nodes
  for (const std::string* node : in_order) {
    const std::vector<uint32_t>& ranks = ranks_on[*node];
    const uint64_t here = ranks.size();
    const uint64_t writers = std::max<uint64_t>((before + here) * files / all - before * files / all, 1);
    for (uint64_t i = 0; i < here; ++i) {
      const uint64_t part = i * writers / here;
      first[ranks[i]] = ranks[(part * here + writers - 1) / writers];
    }
    before += here;
  }
  std::vector<uint32_t> writer_of;
  uint32_t next = 0;
  for (uint32_t rank = 0; rank < all; ++rank)
    writer_of.push_back(first[rank] == rank ? next++ : writer_of[first[rank]]);
  return next == all ? std::vector<uint32_t>() : writer_of;
}

}  // namespace cairn
