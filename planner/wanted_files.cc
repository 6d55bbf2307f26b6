#include "planner/wanted_files.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "planner/box_index.h"

namespace cairn {

WantedFiles::WantedFiles(const SavedIndex& saved, const LayoutIndex& wanted,
                         const std::vector<uint32_t>& saved_array, uint32_t rank)
    : saved_(saved), wanted_(wanted), rank_(rank), wanted_array_(saved.layout().arrays.size(), kNotWanted) {
  for (uint32_t a = 0; a < saved_array.size(); ++a) wanted_array_[saved_array[a]] = a;
}

// Those of the stretch's class, of all files of its writer.
const WantedFiles::Columns& WantedFiles::ColumnsOf(const SavedStretch& stretch) {
  const std::shared_ptr<const std::vector<GridWrite>>& writes = saved_.WritesOf(stretch);
  const auto [known, is_new] = columns_.try_emplace(writes);
  Columns& columns = known->second;
  if (!is_new) return columns;
  looks_ += writes->size();
  std::vector<std::array<FileColumn, 4>> made;
  // By saved rule and wanted rule or, without one, array; by which box of its rank's it is; by the bytes of an element; by column.
  using Alike =
      std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, int64_t, int64_t, int64_t, const FileColumn*>;
  std::map<Alike, uint32_t> kinds;
  const GridTable& grids = wanted_.layout().grids;
  for (const GridWrite& write : *writes) made.resize(std::max<size_t>(made.size(), write.file + size_t{1}));
  for (const GridWrite& write : *writes) {
    FileColumn& column = made[write.file][WidthOf(write)];
    const uint32_t array = wanted_array_[write.array];
    if (array == kNotWanted) continue;
    const Alike alike{saved_.layout().grids.rule_of[write.array],
                      grids.Has(array) ? grids.rule_of[array] : kNoRule,
                      grids.Has(array) ? kNotWanted : array,
                      write.ordinal,
                      write.first_row,
                      write.rows,
                      ElementBytes(write.array),
                      &column};
    const auto [kind, is_new_kind] = kinds.try_emplace(alike, column.kinds.size());
    if (is_new_kind) column.kinds.push_back({write, write.bytes, {}});
    column.kinds[kind->second].elements.push_back(static_cast<uint32_t>(column.elements.size()));
    column.elements.push_back({write.array, kind->second, write.offset});
  }
  for (std::array<FileColumn, 4>& of_file : made) {
    columns.emplace_back();
    for (size_t width = 0; width < of_file.size(); ++width)
      columns.back()[width] = std::make_shared<const FileColumn>(std::move(of_file[width]));
  }
  return columns;
}

std::shared_ptr<const FileColumn> WantedFiles::ColumnOf(const SavedBox& listed) const {
  FileColumn column;
  if (wanted_array_[listed.array] != kNotWanted) {
    column.elements.push_back({listed.array, 0, 0});
    column.kinds.push_back({{}, BytesOf(listed), {0}});
  }
  return std::make_shared<const FileColumn>(std::move(column));
}

uint64_t WantedFiles::BytesOf(const SavedBox& saved) const {
  return static_cast<uint64_t>(saved.box.elements() * ElementBytes(saved.array));
}

std::vector<PlacedColumn>& WantedFiles::ColumnsOf(uint32_t file) {
  const auto [known, is_new] = files_.try_emplace(file);
  std::vector<PlacedColumn>& columns = known->second;
  if (!is_new) return columns;
  const SavedContents contents = saved_.ContentsOf(file);
  for (const SavedStretch& stretch : contents.stretches) columns.push_back({stretch, nullptr, nullptr, {}});
  for (const SavedBox* const box : contents.listed)
    columns.push_back({{box->file_offset, box->file_offset + BytesOf(*box)}, box, nullptr, {}});
  looks_ += columns.size();
  std::stable_sort(columns.begin(), columns.end(), [](const PlacedColumn& a, const PlacedColumn& b) {
    return a.stretch.begin < b.stretch.begin;
  });
  return columns;
}

uint32_t WantedFiles::FirstArrayOf(const PlacedColumn& placed) const {
  if (placed.listed != nullptr) return placed.listed->array;
  const std::vector<GridWrite>& writes = *saved_.WritesOf(placed.stretch);
  return std::find_if(writes.begin(), writes.end(),
                      [&](const GridWrite& write) {
                        return write.file == placed.stretch.file && WidthOf(write) == placed.stretch.width;
                      })
      ->array;
}

Status WantedFiles::CheckFile(uint32_t file) {
  uint64_t end = 0;
  for (const PlacedColumn& placed : ColumnsOf(file)) {
    if (placed.stretch.begin < end) {
      return {Code::kDamage, "saved boxes of array '" + saved_.layout().arrays[FirstArrayOf(placed)].name +
                                 "' and another one overlap in file number " + std::to_string(file)};
    }
    end = placed.stretch.end;
  }
  return OkStatus();
}

const FileColumn& WantedFiles::Open(PlacedColumn& placed) {
  if (placed.column) return *placed.column;
  placed.column = placed.listed != nullptr
                      ? ColumnOf(*placed.listed)
                      : ColumnsOf(placed.stretch)[placed.stretch.file][placed.stretch.width];
  placed.wants.resize(placed.column->kinds.size());
  return *placed.column;
}

const Wants& WantedFiles::WantsOf(PlacedColumn& placed, uint32_t kind) {
  std::unique_ptr<const Wants>& wants = placed.wants[kind];
  if (wants) return *wants;
  const GridWrite& write = placed.column->kinds[kind].write;
  wants = std::make_unique<const Wants>(
      FindWants(placed.listed != nullptr ? *placed.listed
                                         : SavedBox{write.array, 0, 0, saved_.BoxOf(placed.stretch, write)}));
  looks_ += 1 + wants->wants.size();
  return *wants;
}

Wants WantedFiles::FindWants(const SavedBox& saved) {
  Wants out;
  const uint32_t array = wanted_array_[saved.array];
  SavedBox placed = saved;
  placed.file_offset = 0;
  // The boxes of a rule are disjoint. Of others, not all of a region need be taken from this box.
  const bool saved_apart = saved_.layout().grids.Has(saved.array);
  const bool wanted_apart = wanted_.layout().grids.Has(array);
  std::vector<SavedPart> parts;
  const std::vector<Holding> holders = wanted_.HoldersOf(array, saved.box);
  out.wants.reserve(holders.size());
  for (const Holding& holding : holders) {
    std::vector<uint32_t> ordinals;
    if (Has(*holding.ranks, rank_)) ordinals.push_back(holding.ordinal);
    const auto add = [&](const Box& box) {
      const FileRegion region = FileRegion::Make(placed, box, ElementBytes(saved.array));
      out.wants.push_back({region, region.end(), 0, region.bytes(), holding.ranks, ordinals});
    };
    if (saved_apart) {
      add(holding.region);
      continue;
    }
    parts.clear();
    // Cannot fail: this very box holds all of the region.
    if (!saved_.FindBoxes(saved.array, holding.region, &parts).ok()) continue;
    for (const SavedPart& part : parts) {
      if (part.saved.file == saved.file && part.saved.file_offset == saved.file_offset) add(part.region);
    }
  }
  std::sort(out.wants.begin(), out.wants.end(), [](const Want& a, const Want& b) {
    return std::tie(a.region.offset, a.region.box) < std::tie(b.region.offset, b.region.box);
  });
  if (!wanted_apart) {
    JoinReplicas(&out.wants);
    std::vector<const Box*> boxes;
    for (const Want& want : out.wants) boxes.push_back(&want.region.box);
    for (const BoxIndex::Part& part : BoxIndex(boxes).CoverOf(saved.box).parts)
      out.distinct.push_back(FileRegion::Make(placed, part.region, ElementBytes(saved.array)));
  }
  uint64_t reach = 0;
  for (Want& want : out.wants) {
    reach = want.reach = std::max(reach, want.end);
    if (wanted_apart) out.needed_bytes += want.bytes;
  }
  for (const FileRegion& region : out.distinct) out.needed_bytes += region.bytes();
  return out;
}

// Makes one want of those for the same region, which stand side by side.
void WantedFiles::JoinReplicas(std::vector<Want>* wants) {
  std::vector<Want> joined;
  for (size_t i = 0; i < wants->size();) {
    Want& first = joined.emplace_back(std::move((*wants)[i]));
    Ranks ranks = *first.ranks;
    for (++i; i < wants->size() && (*wants)[i].region.box == first.region.box; ++i) {
      const Want& next = (*wants)[i];
      ranks.insert(ranks.end(), next.ranks->begin(), next.ranks->end());
      first.ordinals.insert(first.ordinals.end(), next.ordinals.begin(), next.ordinals.end());
    }
    std::sort(first.ordinals.begin(), first.ordinals.end());
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    first.ranks = &*rank_lists_.insert(std::move(ranks)).first;
  }
  wants->swap(joined);
}

}  // namespace cairn
