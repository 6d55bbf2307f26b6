#include "planner/save_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "planner/save_stream.h"

namespace cairn {
namespace {

// Equal pieces of an array without a rule: those of one box, by rank, each rank once.
struct Replicas {
  uint64_t bytes = 0;
  std::vector<const Piece*> holders;
};

// By array, then by box.
std::vector<Replicas> GroupReplicas(const Layout& layout) {
  std::vector<const Piece*> pieces;
  pieces.reserve(layout.pieces.size());
  for (const Piece& p : layout.pieces) {
    if (!p.box.empty()) pieces.push_back(&p);
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece* a, const Piece* b) {
    return std::tie(a->array, a->box, a->rank, a->ordinal) < std::tie(b->array, b->box, b->rank, b->ordinal);
  });
  std::vector<Replicas> groups;
  for (const Piece* p : pieces) {
    const Piece* last = groups.empty() ? nullptr : groups.back().holders.back();
    if (last == nullptr || last->array != p->array || !(last->box == p->box)) {
      const int element_bytes = DTypeBytes(layout.arrays[p->array].dtype);
      groups.push_back({static_cast<uint64_t>(p->box.elements() * element_bytes), {p}});
    } else if (last->rank != p->rank) {
      groups.back().holders.push_back(p);
    }
  }
  return groups;
}

// Pieces that the same ranks hold, end to end.
struct Sharers {
  uint64_t bytes = 0;
  std::vector<const Replicas*> pieces;
};

// Calls assign(piece of the writer, first row, rows) for every part of the pieces of one set of sharers.
template <typename Assign>
void Share(const Sharers& sharers, uint64_t min_split_bytes, Assign assign) {
  const auto holders = static_cast<uint32_t>(sharers.pieces[0]->holders.size());
  const SaveStream stream(sharers.bytes, holders, min_split_bytes);
  SaveStream::Place place;
  for (const Replicas* piece : sharers.pieces) {
    place.bytes = piece->bytes;
    place.rows = RowsOf(piece->holders[0]->box);
    uint32_t segment = stream.SegmentAt(place.begin);
    for (int64_t row = 0; row < place.rows; ++segment) {
      const int64_t end = stream.RowAt(place, stream.BorderBefore(segment + 1));
      if (end == row) continue;
      assign(*piece->holders[stream.WriterOf(segment)], row, end - row);
      row = end;
    }
    place.begin += place.bytes;
  }
}

// Rule 3, of the boxes of one rank.
void NumberFiles(std::vector<WriteBox>& boxes) {
  std::sort(boxes.begin(), boxes.end(), [](const WriteBox& a, const WriteBox& b) {
    return std::tie(a.array, a.piece_ordinal) < std::tie(b.array, b.piece_ordinal);
  });
  for (size_t i = 0; i < boxes.size(); ++i)
    boxes[i].file = i > 0 && boxes[i].array == boxes[i - 1].array ? boxes[i - 1].file + 1 : 0;
}

}  // namespace

SavePlan::SavePlan(const Layout& layout, uint64_t min_split_bytes)
    : layout_(&layout),
      min_split_bytes_(min_split_bytes),
      writers_(std::make_unique<GridWriters>(layout.arrays, layout.grids, min_split_bytes)),
      listed_(layout.world_size) {}

Result<SavePlan> PlanSave(const Layout& layout, const SavePlanOptions& options) {
  CAIRN_RETURN_IF_ERROR(ValidateLayout(layout));
  SavePlan plan(layout, options.min_split_bytes);
  const auto assign = [&](const Piece& piece, int64_t first_row, int64_t rows) {
    plan.listed_[piece.rank].push_back(
        {piece.array, piece.ordinal, 0, 0, RowsOfPiece(piece.box, first_row, rows)});
  };
  const std::vector<Replicas> groups = GroupReplicas(layout);
  std::map<std::vector<uint32_t>, Sharers> sharers;  // by holders
  for (const Replicas& group : groups) {
    plan.bytes_ += group.bytes;
    if (group.holders.size() == 1) {
      assign(*group.holders[0], 0, RowsOf(group.holders[0]->box));
      continue;
    }
    std::vector<uint32_t> ranks;
    for (const Piece* holder : group.holders) ranks.push_back(holder->rank);
    Sharers& found = sharers[std::move(ranks)];
    found.bytes += group.bytes;
    found.pieces.push_back(&group);
  }
  for (const auto& [ranks, shared] : sharers) Share(shared, options.min_split_bytes, assign);

  size_t most_files = 0;
  for (std::vector<WriteBox>& boxes : plan.listed_) {
    NumberFiles(boxes);
    for (const WriteBox& box : boxes) most_files = std::max<size_t>(most_files, box.file + size_t{1});
  }
  for (uint32_t a = 0; a < layout.arrays.size(); ++a) {
    if (!layout.grids.Has(a)) continue;
    const ArraySpec& array = layout.arrays[a];
    plan.bytes_ += static_cast<uint64_t>(array.shape.Product() * DTypeBytes(array.dtype));
    const Grid grid(layout.grids, layout.grids.rule_of[a]);
    most_files = std::max<size_t>(most_files, grid.pieces_per_rank());
  }
  if (most_files * layout.world_size > std::numeric_limits<uint32_t>::max()) {
    return Status(Code::kInvalid,
                  "a rank has " + std::to_string(most_files) + " pieces of one array, too many for " +
                      std::to_string(layout.world_size) + " ranks: file numbers do not fit 32 bits");
  }
  return plan;
}

// The rank's files, and its listed boxes with their offsets.
std::vector<FileShape> SavePlan::PlaceInFiles(std::vector<WriteBox>* listed, uint32_t rank) const {
  const auto width = [&](const WriteBox& box) { return WidthIndex(layout_->arrays[box.array].dtype); };
  const auto bytes = [&](const WriteBox& box) {
    return static_cast<uint64_t>(box.box.elements() * DTypeBytes(layout_->arrays[box.array].dtype));
  };
  std::vector<WidthBytes> listed_bytes;
  for (const WriteBox& box : listed_[rank]) {
    if (box.file >= listed_bytes.size()) listed_bytes.resize(box.file + size_t{1}, WidthBytes{});
    listed_bytes[box.file][width(box)] += bytes(box);
  }
  std::vector<FileShape> shapes = writers_->PlaceInFiles(rank, listed_bytes);
  std::vector<WidthBytes> end;
  for (const FileShape& shape : shapes) end.push_back(shape.listed_begin);
  for (WriteBox box : listed_[rank]) {
    box.offset = end[box.file][width(box)];
    end[box.file][width(box)] += bytes(box);
    listed->push_back(box);
  }
  return shapes;
}

RankFiles SavePlan::FilesOf(uint32_t rank) const {
  RankFiles files;
  for (const FileShape& shape : PlaceInFiles(&files.listed, rank)) files.data_bytes.push_back(shape.bytes);
  return files;
}

std::vector<WriteBox> SavePlan::BoxesOf(uint32_t rank) const {
  std::vector<WriteBox> boxes;
  const std::vector<FileShape> shapes = PlaceInFiles(&boxes, rank);
  for (uint32_t number = 0; number < writers_->classes(); ++number) {
    const auto writes = writers_->WritesOf(rank, number);
    for (const GridWrite& write : *writes) {
      const Grid grid(layout_->grids, layout_->grids.rule_of[write.array]);
      GridDigits digits = *grid.DigitsOf(rank);
      grid.SetOrdinal(write.ordinal, &digits);
      const size_t width = WidthIndex(layout_->arrays[write.array].dtype);
      boxes.push_back({write.array, write.ordinal, write.file,
                       shapes[write.file].BeginOf(number)[width] + write.offset,
                       RowsOfPiece(grid.BoxAt(digits), write.first_row, write.rows)});
    }
  }
  std::sort(boxes.begin(), boxes.end(), [](const WriteBox& a, const WriteBox& b) {
    return std::tie(a.file, a.offset) < std::tie(b.file, b.offset);
  });
  return boxes;
}

}  // namespace cairn
