#include "planner/grid_writers.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace cairn {
namespace {

uint64_t BytesOfBox(const ArraySpec& array, const Box& box) {
  return static_cast<uint64_t>(box.elements()) * static_cast<uint64_t>(DTypeBytes(array.dtype));
}

// What one rank holds by each rule, at first use: most arrays share their rule with others.
class PiecesByRule {
 public:
  PiecesByRule(const GridTable& grids, uint32_t rank)
      : grids_(grids), rank_(rank), boxes_(grids.rules.size()) {}

  const std::vector<Box>& Of(uint32_t rule) {
    std::vector<Box>& boxes = boxes_[rule];
    if (!boxes.empty()) return boxes;
    const Grid grid(grids_, rule);
    GridDigits digits = *grid.DigitsOf(rank_);
    for (uint32_t i = 0; i < grid.pieces_per_rank(); ++i) {
      grid.SetOrdinal(i, &digits);
      boxes.push_back(grid.BoxAt(digits));
    }
    return boxes;
  }

  // Elements and rows of what it holds by these rules.
  std::vector<int64_t> SizesOf(const std::vector<uint32_t>& rules) {
    std::vector<int64_t> sizes;
    for (const uint32_t rule : rules) {
      for (const Box& box : Of(rule)) {
        sizes.push_back(box.elements());
        sizes.push_back(RowsOf(box));
      }
    }
    return sizes;
  }

 private:
  const GridTable& grids_;
  const uint32_t rank_;
  std::vector<std::vector<Box>> boxes_;
};

// Bytes by file and width.
class FileBytes {
 public:
  void Add(uint32_t file, size_t width, uint64_t more) {
    if (file >= bytes_.size()) bytes_.resize(file + size_t{1}, WidthBytes{});
    bytes_[file][width] += more;
  }
  const std::vector<WidthBytes>& so_far() const { return bytes_; }
  std::vector<WidthBytes> Take() && { return std::move(bytes_); }

 private:
  std::vector<WidthBytes> bytes_;
};

constexpr uint32_t kNoArray = UINT32_MAX;

// Lists one rank's writes of a class, in their order, and finds where each lies.
class WriteList {
 public:
  explicit WriteList(const std::vector<ArraySpec>& arrays) : arrays_(arrays) {}

  void Reserve(size_t writes) { writes_.reserve(writes); }
  void Add(uint32_t array, uint32_t ordinal, int64_t first_row, int64_t rows, uint64_t row_bytes) {
    const uint32_t file = !writes_.empty() && writes_.back().array == array ? writes_.back().file + 1 : 0;
    if (file >= end_.size()) end_.resize(file + size_t{1}, WidthBytes{});
    uint64_t& offset = end_[file][WidthIndex(arrays_[array].dtype)];
    const uint64_t bytes = static_cast<uint64_t>(rows) * row_bytes;
    writes_.push_back({array, ordinal, file, first_row, rows, bytes, offset});
    offset += bytes;
  }
  std::vector<GridWrite> Take() && { return std::move(writes_); }

 private:
  const std::vector<ArraySpec>& arrays_;
  std::vector<GridWrite> writes_;
  std::vector<WidthBytes> end_;  // by file
};

}  // namespace

const WidthBytes& FileShape::BeginOf(uint32_t number) const {
  return std::lower_bound(classes.begin(), classes.end(), number,
                          [](const ClassBegin& c, uint32_t n) { return c.number < n; })
      ->begin;
}

GridWriters::GridWriters(const std::vector<ArraySpec>& arrays, const GridTable& grids,
                         uint64_t min_split_bytes)
    : arrays_(arrays),
      grids_(grids),
      min_split_bytes_(min_split_bytes),
      element_bytes_of_rule_(grids.rules.size(), WidthBytes{}),
      slot_of_(arrays.size()) {
  using Axis = std::tuple<uint32_t, uint32_t, bool>;
  std::map<std::pair<uint32_t, std::vector<Axis>>, uint32_t> known;
  std::vector<uint32_t> pieces_per_rank;
  for (uint32_t r = 0; r < grids.rules.size(); ++r) {
    std::vector<Axis> axes;
    for (const GridAxis& axis : grids.rules[r].axes) {
      if (axis.rank_stride > 0) axes.emplace_back(axis.count, axis.rank_stride, axis.dim < 0);
    }
    const auto [it, is_new] =
        known.emplace(std::pair(grids.rules[r].first_rank, std::move(axes)), classes_.size());
    if (is_new) classes_.push_back({.example = r, .replicas = Grid(grids, r).replicas()});
    classes_[it->second].rules.push_back(r);
    class_of_rule_.push_back(it->second);
    pieces_per_rank.push_back(Grid(grids, r).pieces_per_rank());
  }
  for (uint32_t a = 0; a < arrays.size(); ++a) {
    if (!grids.Has(a)) continue;
    const uint32_t rule = grids.rule_of[a];
    std::vector<uint32_t>& array_of = classes_[class_of_rule_[rule]].array_of;
    slot_of_[a] = array_of.size();
    array_of.insert(array_of.end(), pieces_per_rank[rule], a);
    element_bytes_of_rule_[rule][WidthIndex(arrays[a].dtype)] +=
        static_cast<uint64_t>(DTypeBytes(arrays[a].dtype));
  }
}

std::shared_ptr<const GridWriters::Group> GridWriters::GroupAt(uint32_t number, uint32_t first_rank) const {
  const auto found = groups_.find({number, first_rank});
  if (found != groups_.end()) return found->second;
  const Class& c = classes_[number];
  PiecesByRule pieces(grids_, first_rank);
  Sizes sizes{number, pieces.SizesOf(c.rules)};
  if (const auto alike = groups_by_sizes_.find(sizes); alike != groups_by_sizes_.end())
    return groups_.emplace(std::pair(number, first_rank), alike->second).first->second;
  std::vector<SaveStream::Place> places;
  places.reserve(c.array_of.size());
  std::vector<Mark> marks;
  FileBytes bytes;  // by ordinal
  uint64_t end = 0;
  for (size_t slot = 0; slot < c.array_of.size(); ++slot) {
    const uint32_t a = c.array_of[slot];
    const Box& box = pieces.Of(grids_.rule_of[a])[slot - slot_of_[a]];
    constexpr size_t kSlotsPerMark = 64;
    if (slot == slot_of_[a] && (marks.empty() || slot >= marks.back().slot + kSlotsPerMark))
      marks.push_back({slot, bytes.so_far()});
    places.push_back({end, BytesOfBox(arrays_[a], box), RowsOf(box)});
    bytes.Add(static_cast<uint32_t>(slot - slot_of_[a]), WidthIndex(arrays_[a].dtype), places.back().bytes);
    end += places.back().bytes;
  }
  constexpr size_t kMaxKeptPlaces = 4 << 20;  // 96 MiB
  kept_places_ += places.size();
  if (kept_places_ > kMaxKeptPlaces) {
    groups_.clear();
    groups_by_sizes_.clear();
    kept_places_ = places.size();
  }
  auto group = std::make_shared<const Group>(
      Group{SaveStream(end, c.replicas, min_split_bytes_), std::move(places), std::move(marks)});
  groups_.emplace(std::pair(number, first_rank), group);
  groups_by_sizes_.emplace(std::move(sizes), group);
  return group;
}

std::shared_ptr<const std::vector<GridWrite>> GridWriters::WritesOf(uint32_t rank, uint32_t number) const {
  const Class& c = classes_[number];
  if (c.replicas > 1 || !Grid(grids_, c.example).DigitsOf(rank))
    return std::make_shared<const std::vector<GridWrite>>(SharedPieces(rank, number));
  auto& writes = writes_by_sizes_[{number, PiecesByRule(grids_, rank).SizesOf(c.rules)}];
  if (!writes) writes = std::make_shared<const std::vector<GridWrite>>(WholePieces(rank, number));
  return writes;
}

std::vector<GridWrite> GridWriters::WholePieces(uint32_t rank, uint32_t number) const {
  const Class& c = classes_[number];
  PiecesByRule pieces(grids_, rank);
  WriteList writes(arrays_);
  writes.Reserve(c.array_of.size());
  for (size_t slot = 0; slot < c.array_of.size(); ++slot) {
    const uint32_t a = c.array_of[slot];
    const auto ordinal = static_cast<uint32_t>(slot - slot_of_[a]);
    const Box& box = pieces.Of(grids_.rule_of[a])[ordinal];
    const int64_t rows = RowsOf(box);
    writes.Add(a, ordinal, 0, rows, BytesOfBox(arrays_[a], box) / static_cast<uint64_t>(rows));
  }
  return std::move(writes).Take();
}

std::optional<GridWriters::Share> GridWriters::ShareOf(uint32_t rank, uint32_t number) const {
  const Grid example(grids_, classes_[number].example);
  std::optional<GridDigits> digits = example.DigitsOf(rank);
  if (!digits) return std::nullopt;
  const uint32_t replica = example.ReplicaAt(*digits);
  example.SetReplica(0, &*digits);
  Share share{GroupAt(number, example.RankAt(*digits))};
  const SaveStream& stream = share.group->stream;
  const std::optional<uint32_t> segment = stream.SegmentOf(replica);
  if (!segment) return std::nullopt;
  share.begin = stream.BorderBefore(*segment);
  share.end = stream.BorderBefore(*segment + 1);
  const std::vector<SaveStream::Place>& places = share.group->places;
  const auto by_begin = [](const SaveStream::Place& place, uint64_t border) { return place.begin < border; };
  const auto after = std::lower_bound(places.begin(), places.end(), share.begin + 1, by_begin);
  share.first_slot = static_cast<size_t>(after - places.begin()) - 1;
  share.end_slot =
      static_cast<size_t>(std::lower_bound(after, places.end(), share.end, by_begin) - places.begin());
  return share;
}

// Calls visit(slot, first row, rows) for what is written of these slots.
template <typename Visit>
void GridWriters::Share::ForEachWrite(size_t from, size_t to, Visit visit) const {
  for (size_t slot = from; slot < to; ++slot) {
    const SaveStream::Place& place = group->places[slot];
    const int64_t first = group->stream.RowAt(place, begin), last = group->stream.RowAt(place, end);
    if (first < last) visit(slot, first, last - first);
  }
}

std::vector<GridWrite> GridWriters::SharedPieces(uint32_t rank, uint32_t number) const {
  const Class& c = classes_[number];
  const std::optional<Share> share = ShareOf(rank, number);
  if (!share) return {};
  WriteList writes(arrays_);
  share->ForEachWrite(share->first_slot, share->end_slot, [&](size_t slot, int64_t first, int64_t rows) {
    const SaveStream::Place& place = share->group->places[slot];
    const uint32_t a = c.array_of[slot];
    writes.Add(a, static_cast<uint32_t>(slot - slot_of_[a]), first, rows,
               place.bytes / static_cast<uint64_t>(place.rows));
  });
  return std::move(writes).Take();
}

const GridWrite& GridWriters::FindWrite(const std::vector<GridWrite>& writes, uint32_t array,
                                        uint32_t ordinal) const {
  if (classes_[ClassOf(array)].replicas == 1)
    return writes[slot_of_[array] + ordinal];  // all pieces are there
  return *std::lower_bound(
      writes.begin(), writes.end(), std::pair(array, ordinal),
      [](const GridWrite& w, const auto& piece) { return std::pair(w.array, w.ordinal) < piece; });
}

std::vector<WidthBytes> GridWriters::BytesOf(uint32_t rank, uint32_t number) const {
  return classes_[number].replicas == 1 ? BytesOfWhole(rank, number) : BytesOfShared(rank, number);
}

std::vector<WidthBytes> GridWriters::BytesOfWhole(uint32_t rank, uint32_t number) const {
  FileBytes bytes;
  for (const uint32_t rule : classes_[number].rules) {
    const Grid grid(grids_, rule);
    std::optional<GridDigits> digits = grid.DigitsOf(rank);
    if (!digits) break;
    for (uint32_t i = 0; i < grid.pieces_per_rank(); ++i) {
      grid.SetOrdinal(i, &*digits);
      const auto elements = static_cast<uint64_t>(grid.BoxAt(*digits).elements());
      for (size_t width = 0; width < WidthBytes().size(); ++width) {
        if (element_bytes_of_rule_[rule][width] > 0)
          bytes.Add(i, width, elements * element_bytes_of_rule_[rule][width]);
      }
    }
  }
  return std::move(bytes).Take();
}

// All but the first and the last of a rank's arrays are written whole: of these the marks tell the sum.
std::vector<WidthBytes> GridWriters::BytesOfShared(uint32_t rank, uint32_t number) const {
  const Class& c = classes_[number];
  const std::optional<Share> share = ShareOf(rank, number);
  if (!share) return {};
  FileBytes bytes;
  const auto walk = [&](size_t from, size_t to) {
    uint32_t array = kNoArray, file = 0;
    share->ForEachWrite(from, to, [&](size_t slot, int64_t, int64_t rows) {
      const SaveStream::Place& place = share->group->places[slot];
      file = c.array_of[slot] == array ? file + 1 : 0;
      array = c.array_of[slot];
      bytes.Add(file, WidthIndex(arrays_[array].dtype),
                place.bytes / static_cast<uint64_t>(place.rows) * static_cast<uint64_t>(rows));
    });
  };
  const std::vector<Mark>& marks = share->group->marks;
  const auto at_or_after = [&](size_t slot) {
    return std::lower_bound(marks.begin(), marks.end(), slot,
                            [](const Mark& mark, size_t s) { return mark.slot < s; });
  };
  const auto first = at_or_after(share->first_slot + 1), behind = at_or_after(share->end_slot);
  if (behind - first < 2) {
    walk(share->first_slot, share->end_slot);
    return std::move(bytes).Take();
  }
  const auto last = behind - 1;
  walk(share->first_slot, first->slot);
  for (uint32_t file = 0; file < last->before.size(); ++file) {
    for (size_t width = 0; width < WidthBytes().size(); ++width) {
      const uint64_t before = file < first->before.size() ? first->before[file][width] : 0;
      if (last->before[file][width] > before) bytes.Add(file, width, last->before[file][width] - before);
    }
  }
  walk(last->slot, share->end_slot);
  return std::move(bytes).Take();
}

std::vector<FileShape> GridWriters::PlaceInFiles(uint32_t rank, const std::vector<WidthBytes>& listed) const {
  std::vector<FileShape> shapes(listed.size());
  for (uint32_t number = 0; number < classes_.size(); ++number) {
    const std::vector<WidthBytes> bytes = BytesOf(rank, number);
    if (bytes.size() > shapes.size()) shapes.resize(bytes.size());
    // Sizes for now.
    for (size_t j = 0; j < bytes.size(); ++j) shapes[j].classes.push_back({number, bytes[j]});
  }
  for (size_t j = 0; j < shapes.size(); ++j) {
    uint64_t end = 0;
    const auto place = [&end](uint64_t& size_then_begin) {
      const uint64_t begin = end;
      end += size_then_begin;
      size_then_begin = begin;
    };
    if (j < listed.size()) shapes[j].listed_begin = listed[j];
    for (size_t width = 0; width < WidthBytes().size(); ++width) {
      for (FileShape::ClassBegin& c : shapes[j].classes) place(c.begin[width]);
      place(shapes[j].listed_begin[width]);
    }
    shapes[j].bytes = end;
  }
  return shapes;
}

}  // namespace cairn
