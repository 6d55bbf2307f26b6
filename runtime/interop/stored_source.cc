#include "runtime/interop/stored_source.h"

#include <fcntl.h>

#include <utility>

#include "runtime/io/file.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {
namespace {

// Bytes from the first element of `extent` to the end of its last one.
uint64_t Span(const Dims& extent, const Dims& stride_bytes, int64_t element_bytes) {
  int64_t span = element_bytes;
  for (int d = 0; d < extent.size(); ++d) span += (extent[d] - 1) * stride_bytes[d];
  return static_cast<uint64_t>(span);
}

int64_t Position(const Dims& at, const Dims& origin, const Dims& stride_bytes) {
  int64_t position = 0;
  for (int d = 0; d < at.size(); ++d) position += (at[d] - origin[d]) * stride_bytes[d];
  return position;
}

}  // namespace

Result<std::unique_ptr<StoredSource>> StoredSource::Make(const std::string& where,
                                                         std::vector<ArraySpec> arrays,
                                                         std::vector<std::string> files,
                                                         std::vector<StoredBox> boxes,
                                                         std::vector<std::string> others) {
  std::unique_ptr<StoredSource> source(new StoredSource);
  source->arrays_ = std::move(arrays);
  source->files_ = std::move(files);
  source->others_ = std::move(others);
  source->boxes_.resize(source->arrays_.size());
  for (StoredBox& box : boxes) source->boxes_[box.array].push_back(std::move(box));
  for (size_t i = 0; i < source->arrays_.size(); ++i) {
    const ArraySpec& array = source->arrays_[i];
    if (Status bad = CheckArray(array); !bad.ok()) return Status(Code::kDamage, where + ": " + bad.message());
    std::vector<const Box*> all;
    int64_t elements = 0;
    bool overlap = false;
    for (const StoredBox& box : source->boxes_[i]) {
      if (Status bad = CheckBox(array, box.box); !bad.ok())
        return Status(Code::kDamage, where + ": " + bad.message());
      all.push_back(&box.box);
      overlap |= __builtin_add_overflow(elements, box.box.elements(), &elements);
    }
    source->index_.emplace_back(all);
    if (array.shape.Product() == 0) continue;
    if (overlap || elements > array.shape.Product()) return source->Overlap(where, i);
    const BoxIndex::Cover cover = source->index_.back().CoverOf(Box::Whole(array.shape));
    if (!cover.holes.empty()) {
      return Status(Code::kDamage, where + ": of array \"" + array.name + "\", shape " +
                                       array.shape.ToString() + ", nothing holds " +
                                       cover.holes.front().ToString());
    }
  }
  return source;
}

Status StoredSource::Overlap(const std::string& where, size_t array) const {
  const std::vector<StoredBox>& boxes = boxes_[array];
  std::string files;
  for (size_t i = 0; i < boxes.size() && files.empty(); ++i) {
    for (const uint32_t other : index_[array].Meeting(boxes[i].box)) {
      if (other != i) files = files_[boxes[i].file] + " and " + files_[boxes[other].file];
    }
  }
  return {Code::kDamage, where + ": the same elements of array \"" + arrays_[array].name + "\", shape " +
                             arrays_[array].shape.ToString() + ", lie in " + files +
                             ": are these files of one state?"};
}

Result<SavedLayout> StoredSource::Layout() const {
  SavedLayout saved;
  saved.arrays = arrays_;
  for (uint32_t i = 0; i < arrays_.size(); ++i) {
    const int64_t element_bytes = DTypeBytes(arrays_[i].dtype);
    for (const StoredBox& from : boxes_[i]) {
      const Dims dense = DenseStrides(from.box.extent, element_bytes);
      for (int d = 0; d < dense.size(); ++d) {
        if (from.box.extent[d] > 1 && from.stride_bytes[d] != dense[d]) {
          return Status(Code::kMismatch, files_[from.file] + ": array \"" + arrays_[i].name +
                                             "\" is not stored row by row (channels_last, or transposed); "
                                             "`cairn import` makes a run of such a state");
        }
      }
      saved.boxes.push_back({i, from.file, from.offset, from.box});
    }
  }
  return saved;
}

Result<int> StoredSource::Open(uint32_t file) {
  if (file != open_file_) {
    CAIRN_ASSIGN_OR_RETURN(fd_, OpenFile(files_[file], O_RDONLY));
    open_file_ = file;
  }
  return fd_.get();
}

// A region that is scattered over much more than its own bytes is halved until it is not.
Status StoredSource::ReadPart(const StoredBox& from, const Box& region, const Box& wanted,
                              int64_t element_bytes, std::byte* out) {
  constexpr uint64_t kReadAlong = 4 << 20;
  const auto bytes = static_cast<uint64_t>(region.elements() * element_bytes);
  const uint64_t span = Span(region.extent, from.stride_bytes, element_bytes);
  if (span > kReadAlong && span > 2 * bytes) {
    int widest = -1;
    for (int d = 0; d < region.rank(); ++d) {
      if (region.extent[d] > 1 && (widest < 0 || from.stride_bytes[d] > from.stride_bytes[widest]))
        widest = d;
    }
    Box first = region, second = region;
    first.extent[widest] /= 2;
    second.extent[widest] -= first.extent[widest];
    second.offset[widest] += first.extent[widest];
    CAIRN_RETURN_IF_ERROR(ReadPart(from, first, wanted, element_bytes, out));
    return ReadPart(from, second, wanted, element_bytes, out);
  }
  if (buffer_.size() < span) buffer_.resize(span);
  CAIRN_ASSIGN_OR_RETURN(const int fd, Open(from.file));
  const uint64_t at =
      from.offset + static_cast<uint64_t>(Position(region.offset, from.box.offset, from.stride_bytes));
  CAIRN_RETURN_IF_ERROR(PreadFull(fd, {buffer_.data(), span}, at, files_[from.file]));
  const Dims to = DenseStrides(wanted.extent, element_bytes);
  StridedCopy::Make(region.extent, element_bytes, from.stride_bytes, to)
      .Run(buffer_.data(), out + Position(region.offset, wanted.offset, to));
  return OkStatus();
}

Status StoredSource::Read(uint32_t array, const Box& box, std::span<std::byte> out) {
  const int64_t element_bytes = DTypeBytes(arrays_[array].dtype);
  for (const BoxIndex::Part& part : index_[array].CoverOf(box).parts) {
    CAIRN_RETURN_IF_ERROR(ReadPart(boxes_[array][part.box], part.region, box, element_bytes, out.data()));
  }
  return OkStatus();
}

}  // namespace cairn
