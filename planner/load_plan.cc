// From wanted boxes to reads:
//
// 1. Per array, each wanted box is cut into parts that lie in one saved box each (BoxIndex).
// 2. Each part is cut into chunks. A chunk is one stretch of the file with its one CopyOut. Saved boxes are divided
//    into cells, contiguous in the file and at most max_range_bytes long, and no chunk crosses a cell's border: so
//    even chunks that overlap make no longer range. Inside a cell, a part is one chunk if the gaps between its rows
//    may be read along, else it is cut along its outermost dimension.
// 3. The chunks, in file order, are merged into ranges where they overlap or where the gap between them may be read
//    along.
#include "planner/load_plan.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "planner/box_index.h"

namespace cairn {
namespace {

struct Chunk {
  uint32_t file = 0;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
  uint64_t unwanted_bytes = 0;
  CopyOut copy;  // source_offset 0
};

// Whether a gap may lie inside a range that would have so many bytes, so many of them unwanted.
bool MayReadAlong(uint64_t gap, uint64_t unwanted_bytes, uint64_t range_bytes,
                  const LoadPlanOptions& options) {
  if (gap == 0 || gap < options.page_bytes) return true;
  const auto unwanted = static_cast<double>(unwanted_bytes);
  return gap <= options.max_gap_bytes &&
         unwanted <= options.max_waste * (static_cast<double>(range_bytes) - unwanted);
}

// Cuts parts of one saved box into chunks.
class Chunker {
 public:
  Chunker(const SavedBox& saved, int element_bytes, const LoadPlanOptions& options,
          std::vector<Chunk>* chunks)
      : saved_(saved), element_bytes_(element_bytes), options_(options), chunks_(*chunks) {
    const int rank = saved.box.rank();
    stride_ = Dims::Filled(rank, element_bytes);
    for (int d = rank - 1; d > 0; --d) stride_[d - 1] = stride_[d] * saved.box.extent[d];
  }

  // A cell is one row of each dimension whose rows are too long, and a run of rows of the first one whose
  // rows are not.
  void CutToCells(uint32_t wanted, const Box& part, int d = 0) {
    if (d == part.rank()) return Cut(wanted, part);
    const uint64_t rows_that_fit = options_.max_range_bytes / static_cast<uint64_t>(stride_[d]);
    const int64_t cell_rows = static_cast<int64_t>(
        std::clamp<uint64_t>(rows_that_fit, 1, static_cast<uint64_t>(saved_.box.extent[d])));
    const int64_t end = part.offset[d] + part.extent[d];
    Box piece = part;
    while (piece.offset[d] < end) {
      const int64_t row = piece.offset[d] - saved_.box.offset[d];
      piece.extent[d] = std::min(end - piece.offset[d], cell_rows - row % cell_rows);
      if (rows_that_fit > 0) {
        Cut(wanted, piece);
      } else {
        CutToCells(wanted, piece, d + 1);
      }
      piece.offset[d] += piece.extent[d];
    }
  }

 private:
  void Cut(uint32_t wanted, const Box& part) {
    Chunk chunk{saved_.file,
                saved_.file_offset,
                static_cast<uint64_t>(element_bytes_),
                0,
                {wanted, part, 0, stride_}};
    int outermost = -1;  // dimension with more than one row
    for (int d = 0; d < part.rank(); ++d) {
      if (outermost < 0 && part.extent[d] > 1) outermost = d;
      chunk.offset += static_cast<uint64_t>((part.offset[d] - saved_.box.offset[d]) * stride_[d]);
      chunk.bytes += static_cast<uint64_t>((part.extent[d] - 1) * stride_[d]);
    }
    chunk.unwanted_bytes = chunk.bytes - static_cast<uint64_t>(part.elements() * element_bytes_);
    if (outermost < 0) {
      chunks_.push_back(chunk);
      return;
    }
    // The gaps between rows of the outermost dimension are the widest.
    const auto row_bytes =
        chunk.bytes - static_cast<uint64_t>((part.extent[outermost] - 1) * stride_[outermost]);
    const uint64_t gap = static_cast<uint64_t>(stride_[outermost]) - row_bytes;
    if (MayReadAlong(gap, chunk.unwanted_bytes, chunk.bytes, options_)) {
      chunks_.push_back(chunk);
      return;
    }
    Box row = part;
    row.extent[outermost] = 1;
    for (int64_t i = 0; i < part.extent[outermost]; ++i, ++row.offset[outermost]) Cut(wanted, row);
  }

  const SavedBox& saved_;
  const int element_bytes_;
  const LoadPlanOptions& options_;
  std::vector<Chunk>& chunks_;
  Dims stride_;  // bytes, of the saved box in the file
};

// Steps 1 and 2, array after array.
class Collector {
 public:
  Collector(const std::vector<WantedBox>& wanted, const LoadPlanOptions& options)
      : wanted_(wanted), options_(options) {
    chunks_.reserve(2 * wanted.size());
  }

  // `wanted` are positions of wanted boxes of this array.
  Status Add(const SavedIndex& saved, uint32_t array, std::span<const uint32_t> wanted) {
    const ArraySpec& spec = saved.layout().arrays[array];
    const int element_bytes = DTypeBytes(spec.dtype);
    std::vector<const Box*> wanted_boxes;
    for (const uint32_t w : wanted) {
      if (const Status fits = CheckBox(spec, wanted_[w].box); !fits.ok())
        return fits.Annotate("a wanted box does not fit");
      wanted_boxes.push_back(&wanted_[w].box);
    }
    if (wanted.size() == 1) {
      needed_bytes_ += static_cast<uint64_t>(wanted_boxes[0]->elements() * element_bytes);
      return Cut(saved, array, wanted[0], element_bytes);
    }
    const BoxIndex wanted_index(wanted_boxes);
    for (uint32_t i = 0; i < wanted.size(); ++i) {
      CAIRN_RETURN_IF_ERROR(Cut(saved, array, wanted[i], element_bytes));
      // An element that several boxes want is counted for the one that the index names.
      for (const BoxIndex::Part& part : wanted_index.CoverOf(*wanted_boxes[i]).parts) {
        if (part.box == i) needed_bytes_ += static_cast<uint64_t>(part.region.elements() * element_bytes);
      }
    }
    return OkStatus();
  }

  uint64_t needed_bytes() const { return needed_bytes_; }
  std::vector<Chunk> TakeChunks() && { return std::move(chunks_); }

 private:
  Status Cut(const SavedIndex& saved, uint32_t array, uint32_t wanted, int element_bytes) {
    parts_.clear();
    CAIRN_RETURN_IF_ERROR(saved.FindBoxes(array, wanted_[wanted].box, &parts_));
    for (const SavedPart& part : parts_)
      Chunker(part.saved, element_bytes, options_, &chunks_).CutToCells(wanted, part.region);
    return OkStatus();
  }

  const std::vector<WantedBox>& wanted_;
  const LoadPlanOptions& options_;
  std::vector<Chunk> chunks_;
  std::vector<SavedPart> parts_;  // room for one wanted box
  uint64_t needed_bytes_ = 0;
};

// Step 3. Chunks that overlap lie in one cell, so they fit one range and go there together.
std::vector<ReadRange> Merge(const std::vector<Chunk>& chunks, const LoadPlanOptions& options) {
  struct Place {
    uint32_t file = 0;
    uint32_t chunk = 0;  // chunks are large: their places are sorted
    uint64_t offset = 0;
  };
  std::vector<Place> sorted;
  sorted.reserve(chunks.size());
  for (const Chunk& chunk : chunks)
    sorted.push_back({chunk.file, static_cast<uint32_t>(sorted.size()), chunk.offset});
  std::stable_sort(sorted.begin(), sorted.end(), [](const Place& a, const Place& b) {
    return a.file != b.file ? a.file < b.file : a.offset < b.offset;
  });
  std::vector<ReadRange> ranges;
  uint64_t range_unwanted = 0;  // bytes of ranges.back(), or more: one chunk may want what another does not
  size_t range_begin = 0;       // of its chunks
  const auto add_copies = [&](size_t range_end) {
    if (ranges.empty()) return;
    ReadRange& range = ranges.back();
    range.copies.reserve(range_end - range_begin);
    for (; range_begin < range_end; ++range_begin) {
      range.copies.push_back(chunks[sorted[range_begin].chunk].copy);
      range.copies.back().source_offset = sorted[range_begin].offset - range.offset;
    }
  };
  for (size_t i = 0; i < sorted.size();) {
    const Chunk& first = chunks[sorted[i].chunk];
    const uint32_t file = first.file;
    const uint64_t begin = first.offset;
    uint64_t end = begin + first.bytes;
    uint64_t unwanted = first.unwanted_bytes;
    size_t next = i + 1;  // behind the chunks that overlap
    for (; next < sorted.size() && sorted[next].file == file && sorted[next].offset < end; ++next) {
      const Chunk& chunk = chunks[sorted[next].chunk];
      end = std::max(end, chunk.offset + chunk.bytes);
      unwanted += chunk.unwanted_bytes;
    }

    bool joins = false;
    if (!ranges.empty() && ranges.back().file == file) {
      ReadRange& range = ranges.back();
      const uint64_t gap = begin - (range.offset + range.bytes);
      const uint64_t bytes = end - range.offset;
      joins = bytes <= options.max_range_bytes &&
              MayReadAlong(gap, range_unwanted + gap + unwanted, bytes, options);
      if (joins) {
        range.bytes = bytes;
        range_unwanted += gap + unwanted;
      }
    }
    if (!joins) {
      add_copies(i);
      ranges.push_back({file, begin, end - begin, {}});
      range_unwanted = unwanted;
    }
    i = next;
  }
  add_copies(sorted.size());
  return ranges;
}

}  // namespace

Result<LoadPlan> PlanLoad(const SavedIndex& saved, const std::vector<WantedBox>& wanted,
                          const LoadPlanOptions& options) {
  const size_t arrays = saved.layout().arrays.size();
  std::vector<uint32_t> first(arrays + 1, 0), order(wanted.size());  // positions in `wanted`, by array
  for (uint32_t w = 0; w < wanted.size(); ++w) {
    if (wanted[w].array >= arrays) {
      return Status(Code::kInvalid, "wanted box " + std::to_string(w) + " names array number " +
                                        std::to_string(wanted[w].array) + ", of " + std::to_string(arrays));
    }
    ++first[wanted[w].array + 1];
  }
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<uint32_t> next(first.begin(), first.end() - 1);
  for (uint32_t w = 0; w < wanted.size(); ++w) order[next[wanted[w].array]++] = w;
  Collector collector(wanted, options);
  for (uint32_t a = 0; a < arrays; ++a) {
    const auto of_array = std::span(order).subspan(first[a], first[a + 1] - first[a]);
    if (!of_array.empty()) CAIRN_RETURN_IF_ERROR(collector.Add(saved, a, of_array));
  }
  LoadPlan plan;
  plan.needed_bytes = collector.needed_bytes();
  plan.ranges = Merge(std::move(collector).TakeChunks(), options);
  for (const ReadRange& range : plan.ranges) plan.read_bytes += range.bytes;
  return plan;
}

Result<LoadPlan> PlanLoad(const SavedLayout& saved, const std::vector<WantedBox>& wanted,
                          const LoadPlanOptions& options) {
  CAIRN_ASSIGN_OR_RETURN(const SavedIndex index, SavedIndex::Make(saved));
  return PlanLoad(index, wanted, options);
}

}  // namespace cairn
