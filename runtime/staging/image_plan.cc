#include "runtime/staging/image_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "planner/layout_index.h"
#include "runtime/formats/names.h"
#include "runtime/formats/shard.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {
namespace {

Status Foreign(const std::string& what) {
  return {Code::kInternal, "the save plan does not belong to the layout: " + what};
}

// The number of a file as ShardRecord has it: PlanSave sees to it that it fits.
uint32_t NumberOf(const SavePlan& plan, uint32_t rank, uint32_t file) {
  return static_cast<uint32_t>(FileNumber(plan.world_size(), rank, file));
}

// A stream of little-endian numbers and length-prefixed texts, hashed.
class LayoutHasher {
 public:
  void Add(uint64_t value) {
    std::byte bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
    hasher_.Update(bytes);
  }
  void Add(std::string_view text) {
    Add(text.size());
    hasher_.Update(std::as_bytes(std::span(text)));
  }
  void Add(const Dims& dims) {
    Add(static_cast<uint64_t>(dims.size()));
    for (int64_t d : dims) Add(static_cast<uint64_t>(d));
  }
  Hash128 Finish() const { return hasher_.Finish(); }

 private:
  Hasher128 hasher_;
};

}  // namespace

std::vector<Piece> PiecesOf(const Layout& layout, uint32_t rank) {
  return LayoutIndex(layout).PiecesOf(rank);
}

Result<ImagePlan> PlanImages(const Writers& writers, const SavePlan& plan, uint32_t rank) {
  const Layout& layout = writers.layout();
  if (rank >= writers.layout_of_ranks().world_size || layout.world_size != plan.world_size())
    return Foreign("it has no rank " + std::to_string(rank));
  const uint32_t writer = writers.Of(rank);
  const std::vector<Piece> own = PiecesOf(writers.layout_of_ranks(), rank);
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> piece_of;  // (array, ordinal) → position
  for (uint32_t p = 0; p < own.size(); ++p) piece_of[{own[p].array, own[p].ordinal}] = p;

  const std::vector<WriteBox> boxes = plan.BoxesOf(writer);
  WriterPieces pieces(writers, writer);
  std::vector<Image> images;
  uint64_t turn = 0;  // counts what the writer's ranks copy
  for (size_t begin = 0, end = 0; begin < boxes.size(); begin = end) {
    std::vector<ShardTensor> tensors;
    for (; end < boxes.size() && boxes[end].file == boxes[begin].file; ++end) {
      const ArraySpec& array = layout.arrays[boxes[end].array];
      tensors.push_back({array.name, array.dtype, boxes[end].box});
    }
    CAIRN_ASSIGN_OR_RETURN(ShardLayout shard, LayOutShard(tensors));
    Image& image = images.emplace_back();
    image.number = NumberOf(plan, writer, boxes[begin].file);
    image.size_bytes = shard.file_bytes;
    image.header = std::move(shard.header);
    for (size_t i = begin; i < end; ++i) {
      const WriteBox& box = boxes[i];
      const std::vector<WriterPiece>& of_array = pieces.Of(box.array);
      if (box.piece_ordinal >= of_array.size() || !of_array[box.piece_ordinal].box.Contains(box.box) ||
          shard.offsets[i - begin] != image.header.size() + box.offset) {
        return Foreign("writer " + std::to_string(writer) + " holds no box " + box.box.ToString() +
                       " of array \"" + layout.arrays[box.array].name + "\", or it lies elsewhere");
      }
      const int64_t element_bytes = DTypeBytes(layout.arrays[box.array].dtype);
      const Dims stride = DenseStrides(box.box.extent, element_bytes);
      for (const WriterPiece::Part& part : of_array[box.piece_ordinal].parts) {
        const std::optional<Box> region = Intersect(part.box, box.box);
        if (!region) continue;
        const auto holder = std::find_if(part.holders.begin(), part.holders.end(),
                                         [rank](const WriterPiece::Holder& h) { return h.rank == rank; });
        const uint64_t this_turn = turn++;
        if (holder == part.holders.end()) continue;
        const CopiedRows rows =
            RowsOfHolder(static_cast<uint64_t>(holder - part.holders.begin()), part.holders.size(), this_turn,
                         RowsOf(*region), static_cast<uint64_t>(region->elements() * element_bytes),
                         plan.min_split_bytes());
        if (rows.count == 0) continue;
        CopyTask& task = image.copies.emplace_back();
        task.piece = piece_of.at({box.array, holder->ordinal});
        task.region = RowsOfPiece(*region, rows.first, rows.count);
        task.element_bytes = element_bytes;
        task.offset = shard.offsets[i - begin];
        task.stride = stride;
        for (int d = 0; d < stride.size(); ++d) {
          task.offset += static_cast<uint64_t>((task.region.offset[d] - box.box.offset[d]) * stride[d]);
          task.region.offset[d] -= part.box.offset[d];
        }
      }
    }
    std::sort(image.copies.begin(), image.copies.end(),
              [](const CopyTask& a, const CopyTask& b) { return a.offset < b.offset; });
  }
  ImagePlan out;
  const bool makes_them = writers.RanksOf(writer).front() == rank;
  for (const Image& image : images) {
    if (makes_them) out.bytes += image.size_bytes;
  }
  (makes_them ? out.images : out.shared) = std::move(images);
  return out;
}

Result<ImagePlan> PlanImages(const Layout& layout, const SavePlan& plan, uint32_t rank) {
  CAIRN_ASSIGN_OR_RETURN(const Writers writers, Writers::Make(layout));
  return PlanImages(writers, plan, rank);
}

Result<Index> DescribeSave(const Layout& layout, const SavePlan& plan) {
  Index index;
  index.world_size = layout.world_size;
  index.saved.world_size = layout.world_size;
  index.saved.min_split_bytes = plan.min_split_bytes();
  index.saved.arrays = layout.arrays;
  index.saved.grids = layout.grids;
  if (plan.world_size() != layout.world_size) return Foreign("it is for another number of ranks");
  std::vector<std::pair<uint32_t, WriteBox>> listed;  // (file number, box)
  for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
    const RankFiles files = plan.FilesOf(rank);
    for (uint32_t j = 0; j < files.data_bytes.size(); ++j)
      index.files.push_back({NumberOf(plan, rank, j), files.data_bytes[j], {}});
    for (const WriteBox& box : files.listed) listed.emplace_back(NumberOf(plan, rank, box.file), box);
  }
  std::sort(index.files.begin(), index.files.end(),
            [](const ShardRecord& a, const ShardRecord& b) { return a.number < b.number; });
  std::unordered_map<uint32_t, uint32_t> position;  // of a file number
  for (uint32_t f = 0; f < index.files.size(); ++f) position.emplace(index.files[f].number, f);
  for (const auto& [number, box] : listed)
    index.saved.boxes.push_back({box.array, position.at(number), box.offset, box.box});
  std::stable_sort(index.saved.boxes.begin(), index.saved.boxes.end(),
                   [](const SavedBox& a, const SavedBox& b) { return a.array < b.array; });
  index.saved.files = FilesOf(index.files);
  return index;
}

Status FillRecords(Index& index, std::span<const ShardRecord> records) {
  std::unordered_map<uint32_t, size_t> open;  // number → position
  for (size_t f = 0; f < index.files.size(); ++f) open.emplace(index.files[f].number, f);
  std::vector<ShardRecord> files(index.files.size());
  for (const ShardRecord& record : records) {
    const auto found = open.find(record.number);
    if (found == open.end()) {
      return {Code::kInternal,
              names::Shard(record.number) + " was reported twice, or is no file of this save"};
    }
    const uint64_t data_bytes = index.files[found->second].bytes;
    if (record.bytes <= data_bytes || (record.bytes - data_bytes) % kShardAlignment != 0) {
      return {Code::kInternal, names::Shard(record.number) + " has " + std::to_string(record.bytes) +
                                   " bytes, planned were a header and " + std::to_string(data_bytes)};
    }
    files[found->second] = record;
    open.erase(found);
  }
  if (!open.empty()) {
    const auto lowest = std::min_element(open.begin(), open.end(),
                                         [](const auto& a, const auto& b) { return a.first < b.first; });
    return {Code::kInternal, "no member reported " + names::Shard(lowest->first)};
  }
  for (SavedBox& box : index.saved.boxes)
    box.file_offset += files[box.file].bytes - index.files[box.file].bytes;
  index.files = std::move(files);
  index.saved.files = FilesOf(index.files);
  return OkStatus();
}

Hash128 LayoutHash(const Layout& layout, std::span<const uint32_t> writer_of) {
  LayoutHasher hasher;
  hasher.Add(std::string_view("cairn layout 1"));
  hasher.Add(layout.world_size);
  hasher.Add(layout.arrays.size());
  for (const ArraySpec& array : layout.arrays) {
    hasher.Add(std::string_view(array.name));
    hasher.Add(static_cast<uint64_t>(array.dtype));
    hasher.Add(static_cast<uint64_t>(array.fortran));
    hasher.Add(array.shape);
  }
  const GridTable& grids = layout.grids;
  hasher.Add(grids.cuts.size());
  for (const Cuts& cuts : grids.cuts) {
    hasher.Add(cuts.runs().size());
    for (const Cuts::Run& run : cuts.runs()) {
      hasher.Add(run.parts);
      hasher.Add(run.length);
    }
  }
  hasher.Add(grids.rules.size());
  for (const GridRule& rule : grids.rules) {
    hasher.Add(rule.first_rank);
    hasher.Add(rule.axes.size());
    for (const GridAxis& axis : rule.axes) {
      hasher.Add(axis.count);
      hasher.Add(axis.rank_stride);
      hasher.Add(axis.part_stride);
      hasher.Add(static_cast<uint64_t>(axis.dim));
    }
    hasher.Add(rule.cuts.size());
    for (const uint32_t cuts : rule.cuts) hasher.Add(cuts);
  }
  hasher.Add(grids.rule_of.size());
  for (const uint32_t rule : grids.rule_of) hasher.Add(rule);
  hasher.Add(layout.pieces.size());
  for (const Piece& piece : layout.pieces) {
    hasher.Add(piece.array);
    hasher.Add(piece.rank);
    hasher.Add(piece.ordinal);
    hasher.Add(piece.box.offset);
    hasher.Add(piece.box.extent);
  }
  if (!writer_of.empty()) hasher.Add(std::string_view("writers"));
  for (const uint32_t writer : writer_of) hasher.Add(writer);
  return hasher.Finish();
}

}  // namespace cairn
