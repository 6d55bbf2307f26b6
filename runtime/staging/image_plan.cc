#include "runtime/staging/image_plan.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runtime/formats/names.h"
#include "runtime/formats/shard.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {
namespace {

// One file of a rank: which boxes it holds, and where they lie. Boxes keep the plan's order.
struct LaidOutFile {
  uint32_t file = 0;  // position in SavePlan::files
  std::vector<const WriteBox*> boxes;
  ShardLayout shard;
};

Status Foreign(const std::string& what) {
  return {Code::kInternal, "the save plan does not belong to the layout: " + what};
}

Result<std::vector<LaidOutFile>> LayOutRank(const Layout& layout, const SavePlan& plan, uint32_t rank) {
  if (rank >= plan.boxes.size()) return Foreign("it has no rank " + std::to_string(rank));
  std::map<uint32_t, LaidOutFile> by_file;
  for (const WriteBox& box : plan.boxes[rank]) {
    if (box.array >= layout.arrays.size()) return Foreign("array " + std::to_string(box.array));
    if (box.file >= plan.files.size() || plan.files[box.file].rank != rank) {
      return Foreign("file " + std::to_string(box.file) + " of rank " + std::to_string(rank));
    }
    by_file[box.file].boxes.push_back(&box);
  }
  std::vector<LaidOutFile> files;
  for (auto& [file, laid_out] : by_file) {
    std::vector<ShardTensor> tensors;
    tensors.reserve(laid_out.boxes.size());
    for (const WriteBox* box : laid_out.boxes) {
      const ArraySpec& array = layout.arrays[box->array];
      tensors.push_back({array.name, array.dtype, box->box});
    }
    CAIRN_ASSIGN_OR_RETURN(laid_out.shard, LayOutShard(tensors));
    laid_out.file = file;
    files.push_back(std::move(laid_out));
  }
  return files;
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
  std::vector<Piece> pieces;
  for (const Piece& piece : layout.pieces) {
    if (piece.rank == rank) pieces.push_back(piece);
  }
  return pieces;
}

Result<ImagePlan> PlanImages(const Layout& layout, const SavePlan& plan, uint32_t rank) {
  const std::vector<Piece> pieces = PiecesOf(layout, rank);
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> piece_of;  // (array, ordinal) → position
  for (uint32_t p = 0; p < pieces.size(); ++p) piece_of[{pieces[p].array, pieces[p].ordinal}] = p;

  CAIRN_ASSIGN_OR_RETURN(std::vector<LaidOutFile> files, LayOutRank(layout, plan, rank));
  ImagePlan images;
  for (LaidOutFile& file : files) {
    Image image;
    image.number = plan.files[file.file].number;
    image.size_bytes = file.shard.file_bytes;
    image.header = std::move(file.shard.header);
    for (size_t i = 0; i < file.boxes.size(); ++i) {
      const WriteBox& box = *file.boxes[i];
      const auto found = piece_of.find({box.array, box.piece_ordinal});
      if (found == piece_of.end() || !pieces[found->second].box.Contains(box.box)) {
        return Foreign("rank " + std::to_string(rank) + " holds no box " + box.box.ToString() +
                       " of array \"" + layout.arrays[box.array].name + "\"");
      }
      CopyTask task;
      task.piece = found->second;
      task.region = box.box;
      const Box& piece = pieces[task.piece].box;
      for (int d = 0; d < piece.rank(); ++d) task.region.offset[d] -= piece.offset[d];
      task.element_bytes = DTypeBytes(layout.arrays[box.array].dtype);
      task.offset = file.shard.offsets[i];
      image.copies.push_back(task);
    }
    std::sort(image.copies.begin(), image.copies.end(),
              [](const CopyTask& a, const CopyTask& b) { return a.offset < b.offset; });
    images.bytes += image.size_bytes;
    images.images.push_back(std::move(image));
  }
  std::sort(images.images.begin(), images.images.end(),
            [](const Image& a, const Image& b) { return a.number < b.number; });
  return images;
}

Result<Index> DescribeSave(const Layout& layout, const SavePlan& plan) {
  Index index;
  index.world_size = layout.world_size;
  index.saved.arrays = layout.arrays;
  index.files.resize(plan.files.size());
  for (uint32_t rank = 0; rank < plan.boxes.size(); ++rank) {
    CAIRN_ASSIGN_OR_RETURN(const std::vector<LaidOutFile> files, LayOutRank(layout, plan, rank));
    for (const LaidOutFile& file : files) {
      index.files[file.file].number = plan.files[file.file].number;
      index.files[file.file].bytes = file.shard.file_bytes;
      for (size_t i = 0; i < file.boxes.size(); ++i) {
        const WriteBox& box = *file.boxes[i];
        index.saved.boxes.push_back({box.array, file.file, file.shard.offsets[i], box.box});
      }
    }
  }
  std::stable_sort(index.saved.boxes.begin(), index.saved.boxes.end(),
                   [](const SavedBox& a, const SavedBox& b) { return a.array < b.array; });
  return index;
}

Status FillRecords(Index& index, std::span<const ShardRecord> records) {
  std::unordered_map<uint32_t, ShardRecord*> open;
  for (ShardRecord& file : index.files) open[file.number] = &file;
  for (const ShardRecord& record : records) {
    const auto found = open.find(record.number);
    if (found == open.end()) {
      return {Code::kInternal,
              names::Shard(record.number) + " was reported twice, or is no file of this save"};
    }
    if (found->second->bytes != record.bytes) {
      return {Code::kInternal, names::Shard(record.number) + " has " + std::to_string(record.bytes) +
                                   " bytes, planned were " + std::to_string(found->second->bytes)};
    }
    *found->second = record;
    open.erase(found);
  }
  if (open.empty()) return OkStatus();
  const auto lowest = std::min_element(open.begin(), open.end(),
                                       [](const auto& a, const auto& b) { return a.first < b.first; });
  return {Code::kInternal, "no member reported " + names::Shard(lowest->first)};
}

Hash128 LayoutHash(const Layout& layout) {
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
  hasher.Add(layout.pieces.size());
  for (const Piece& piece : layout.pieces) {
    hasher.Add(piece.array);
    hasher.Add(piece.rank);
    hasher.Add(piece.ordinal);
    hasher.Add(piece.box.offset);
    hasher.Add(piece.box.extent);
  }
  return hasher.Finish();
}

}  // namespace cairn
