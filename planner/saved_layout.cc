#include "planner/saved_layout.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "planner/save_plan.h"

namespace cairn {
namespace {

Status CheckSaved(const ArraySpec& array, const SavedBox& saved) {
  const Status fits = CheckBox(array, saved.box);
  if (!fits.ok()) return {Code::kDamage, "a saved box does not fit: " + fits.message()};
  const auto bytes = static_cast<uint64_t>(saved.box.elements() * DTypeBytes(array.dtype));
  if (saved.file_offset > std::numeric_limits<uint64_t>::max() - bytes) {
    return {Code::kDamage, "array '" + array.name + "': a saved box lies at file offset " +
                               std::to_string(saved.file_offset) + ", which no file has"};
  }
  return OkStatus();
}

}  // namespace

SavedIndex::SavedIndex(const SavedLayout& saved)
    : saved_(&saved),
      boxes_(saved.arrays.size()),
      cells_(saved.grids),
      writers_(std::make_unique<GridWriters>(saved.arrays, saved.grids, saved.min_split_bytes)) {}

Result<SavedIndex> SavedIndex::Make(const SavedLayout& saved) {
  if (const Status rules = CheckGrids(saved.grids, saved.world_size); !rules.ok())
    return Status(Code::kDamage, rules.message());
  SavedIndex index(saved);
  size_t box = 0;
  for (uint32_t a = 0; a < saved.arrays.size(); ++a) {
    if (const Status status = CheckArray(saved.arrays[a]); !status.ok())
      return Status(Code::kDamage, status.message());
    index.first_box_.push_back(box);
    if (saved.grids.Has(a)) {
      const Dims shape = Grid(saved.grids, saved.grids.rule_of[a]).shape();
      if (!(shape == saved.arrays[a].shape))
        return Status(Code::kDamage,
                      "array '" + saved.arrays[a].name + "' has a rule for shape " + shape.ToString());
      continue;
    }
    for (; box < saved.boxes.size() && saved.boxes[box].array == a; ++box) {
      const SavedBox& listed = saved.boxes[box];
      CAIRN_RETURN_IF_ERROR(CheckSaved(saved.arrays[a], listed));
      if (saved.grids.rules.empty()) continue;
      index.listed_bytes_[listed.file][WidthIndex(saved.arrays[a].dtype)] +=
          static_cast<uint64_t>(listed.box.elements() * DTypeBytes(saved.arrays[a].dtype));
    }
  }
  index.first_box_.push_back(box);
  if (box != saved.boxes.size()) {
    return Status(Code::kDamage, "the saved boxes are not grouped by array: box " + std::to_string(box) +
                                     " of array number " + std::to_string(saved.boxes[box].array) +
                                     " is out of order");
  }
  return index;
}

Result<std::vector<SavedPart>> SavedIndex::BoxesIn(uint32_t array, const Box& box) const {
  std::vector<SavedPart> parts;
  CAIRN_RETURN_IF_ERROR(FindBoxes(array, box, &parts));
  return parts;
}

Status SavedIndex::FindBoxes(uint32_t array, const Box& box, std::vector<SavedPart>* parts) const {
  if (saved_->grids.Has(array)) return FindByRule(array, box, parts);
  const SavedBox* const saved = saved_->boxes.data() + first_box_[array];
  if (!boxes_[array]) {
    std::vector<const Box*> boxes;
    for (size_t b = first_box_[array]; b < first_box_[array + 1]; ++b) boxes.push_back(&saved_->boxes[b].box);
    boxes_[array] = std::make_unique<BoxIndex>(boxes);
  }
  const BoxIndex::Cover cover = boxes_[array]->CoverOf(box);
  if (!cover.holes.empty()) {
    const ArraySpec& spec = saved_->arrays[array];
    return {Code::kDamage, "array '" + spec.name + "' of shape " + spec.shape.ToString() + ": elements " +
                               cover.holes[0].ToString() +
                               " are wanted and no saved box holds them; this checkpoint is not whole"};
  }
  for (const BoxIndex::Part& part : cover.parts) parts->push_back({saved[part.box], part.region});
  return OkStatus();
}

Status SavedIndex::FindByRule(uint32_t array, const Box& box, std::vector<SavedPart>* parts) const {
  if (box.empty()) return OkStatus();
  const uint32_t number = writers_->ClassOf(array);
  const size_t width = WidthIndex(saved_->arrays[array].dtype);
  Status status;
  for (const GridCell& cell : cells_.CellsIn(saved_->grids.rule_of[array], box)) {
    writers_->ForEachPart(array, cell, [&](uint32_t rank, int64_t first_row, int64_t rows) {
      const Box written = RowsOfPiece(cell.box, first_row, rows);
      const bool whole = rows == RowsOf(cell.box);
      const std::optional<Box> region = whole ? cell.region : Intersect(cell.region, written);
      if (!region || !status.ok()) return;
      Writer& writer = WriterAt(rank);
      status = writer.status;
      if (!status.ok()) return;
      const GridWrite& write = writers_->FindWrite(*WritesOf(writer, rank, number), array, cell.ordinal);
      const uint64_t offset = BeginOf(writer, number, write.file, width) + write.offset;
      parts->push_back({{array, writer.files[write.file], offset, written}, *region});
    });
  }
  return status;
}

SavedIndex::Writer& SavedIndex::WriterAt(uint32_t rank) const {
  const auto found = writer_at_.find(rank);
  if (found != writer_at_.end()) return found->second;
  Result<Writer> made = FindFiles(rank);
  return writer_at_.emplace(rank, made.ok() ? *std::move(made) : Writer{made.status(), {}, {}, {}})
      .first->second;
}

const std::shared_ptr<const std::vector<GridWrite>>& SavedIndex::WritesOf(Writer& writer, uint32_t rank,
                                                                          uint32_t number) const {
  auto& writes = writer.writes[number];
  if (!writes) writes = writers_->WritesOf(rank, number);
  return writes;
}

// Where the boxes of a class and width begin. Files end with their data.
uint64_t SavedIndex::BeginOf(const Writer& writer, uint32_t number, uint32_t file, size_t width) const {
  const FileShape& shape = writer.shapes[file];
  return saved_->files[writer.files[file]].bytes - shape.bytes + shape.BeginOf(number)[width];
}

Result<SavedIndex::Writer> SavedIndex::FindFiles(uint32_t rank) const {
  Writer writer;
  writer.writes.resize(writers_->classes());
  std::vector<WidthBytes> listed;
  const auto find = [&](uint32_t j) {
    const uint64_t number = FileNumber(saved_->world_size, rank, j);
    const auto file = std::lower_bound(saved_->files.begin(), saved_->files.end(), number,
                                       [](const SavedFile& f, uint64_t n) { return f.number < n; });
    if (file == saved_->files.end() || file->number != number) return false;
    writer.files.push_back(static_cast<uint32_t>(file - saved_->files.begin()));
    return true;
  };
  for (uint32_t j = 0; find(j); ++j) {
    const auto bytes = listed_bytes_.find(writer.files.back());
    listed.push_back(bytes == listed_bytes_.end() ? WidthBytes{} : bytes->second);
  }
  writer.shapes = writers_->PlaceInFiles(rank, listed);
  if (writer.shapes.size() > writer.files.size()) {
    return Status(Code::kDamage, "the arrays of rank " + std::to_string(rank) + " need file number " +
                                     std::to_string(FileNumber(saved_->world_size, rank,
                                                               static_cast<uint32_t>(writer.files.size()))) +
                                     ", which is not listed");
  }
  for (size_t j = 0; j < writer.shapes.size(); ++j) {
    const SavedFile& file = saved_->files[writer.files[j]];
    if (writer.shapes[j].bytes < file.bytes) continue;
    return Status(Code::kDamage, "file number " + std::to_string(file.number) + " has " +
                                     std::to_string(file.bytes) + " bytes, its arrays take " +
                                     std::to_string(writer.shapes[j].bytes));
  }
  return writer;
}

SavedContents SavedIndex::ContentsOf(uint32_t file) const {
  if (listed_in_.empty()) {
    for (uint32_t b = 0; b < saved_->boxes.size(); ++b) {
      if (!saved_->boxes[b].box.empty()) listed_in_[saved_->boxes[b].file].push_back(b);
    }
  }
  SavedContents contents;
  if (const auto listed = listed_in_.find(file); listed != listed_in_.end()) {
    for (const uint32_t b : listed->second) contents.listed.push_back(&saved_->boxes[b]);
  }
  if (saved_->grids.rules.empty() || file >= saved_->files.size()) return contents;
  const uint32_t rank = (saved_->files[file].number - 1) % saved_->world_size;
  const uint32_t j = (saved_->files[file].number - 1) / saved_->world_size;
  Writer& writer = WriterAt(rank);
  if (!writer.status.ok() || j >= writer.shapes.size()) return contents;
  const FileShape& shape = writer.shapes[j];
  for (size_t c = 0; c < shape.classes.size(); ++c) {
    const WidthBytes& begin = shape.classes[c].begin;
    const WidthBytes& end = c + 1 < shape.classes.size() ? shape.classes[c + 1].begin : shape.listed_begin;
    for (uint32_t width = 0; width < begin.size(); ++width) {
      const uint64_t at = BeginOf(writer, shape.classes[c].number, j, width);
      if (begin[width] < end[width])
        contents.stretches.push_back(
            {at, at + end[width] - begin[width], rank, shape.classes[c].number, j, width});
    }
  }
  return contents;
}

Box SavedIndex::BoxOf(const SavedStretch& stretch, const GridWrite& write) const {
  const Grid grid(saved_->grids, saved_->grids.rule_of[write.array]);
  GridDigits digits = *grid.DigitsOf(stretch.rank);
  grid.SetOrdinal(write.ordinal, &digits);
  return RowsOfPiece(grid.BoxAt(digits), write.first_row, write.rows);
}

}  // namespace cairn
