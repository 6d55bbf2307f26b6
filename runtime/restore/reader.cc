#include "runtime/restore/reader.h"

#include <algorithm>
#include <span>

#include "runtime/restore/block_reader.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

// The copies of the ranges of one file, by the position of their first byte.
Result<std::vector<WindowedCopy>> PrepareCopies(std::span<const ReadRange> ranges,
                                                const std::vector<Destination>& destinations) {
  std::vector<WindowedCopy> copies;
  for (const ReadRange& range : ranges) {
    for (const CopyOut& out : range.copies) {
      if (out.wanted >= destinations.size() || !destinations[out.wanted].box.Contains(out.region)) {
        return Status(Code::kInternal,
                      "the load plan wants " + out.region.ToString() + ", which no destination holds");
      }
      const Destination& to = destinations[out.wanted];
      int64_t at = 0;
      for (int d = 0; d < out.region.rank(); ++d)
        at += (out.region.offset[d] - to.box.offset[d]) * to.stride_bytes[d];
      copies.emplace_back(
          StridedCopy::Make(out.region.extent, to.element_bytes, out.source_stride, to.stride_bytes),
          range.offset + out.source_offset, to.data + at);
    }
  }
  std::sort(copies.begin(), copies.end(), [](const WindowedCopy& a, const WindowedCopy& b) {
    return a.next_position() < b.next_position();
  });
  return copies;
}

// The blocks that the ranges of one file touch, in their order.
Result<std::vector<uint64_t>> BlocksOf(const SourceFile& file, std::span<const ReadRange> ranges) {
  std::vector<uint64_t> blocks;
  for (const ReadRange& range : ranges) {
    const uint64_t end = range.offset + range.bytes;
    if (end > file.size_bytes) {
      return Status(Code::kInternal, "the load plan reads " + file.path + " up to byte " +
                                         std::to_string(end) + " of " + std::to_string(file.size_bytes));
    }
    const uint64_t next = blocks.empty() ? 0 : blocks.back() + 1;
    for (uint64_t block = std::max(next, range.offset / kBlockBytes); block * kBlockBytes < end; ++block)
      blocks.push_back(block);
  }
  return blocks;
}

Status LoadFile(const SourceFile& file, std::span<const ReadRange> ranges,
                const std::vector<Destination>& destinations, const LoadOptions& options, BlockBuffer& buffer,
                LoadStats& stats) {
  CAIRN_ASSIGN_OR_RETURN(std::vector<WindowedCopy> copies, PrepareCopies(ranges, destinations));
  CAIRN_ASSIGN_OR_RETURN(const std::vector<uint64_t> blocks, BlocksOf(file, ranges));
  BlockReader reader(file, options, stats);
  CAIRN_RETURN_IF_ERROR(reader.Open(blocks));
  size_t begun = 0;                    // copies before this one have begun
  std::vector<WindowedCopy*> running;  // begun and not done
  for (const uint64_t block : blocks) {
    CAIRN_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, reader.ReadBlock(block, buffer.room()));
    const uint64_t begin = block * kBlockBytes;
    while (begun < copies.size() && copies[begun].next_position() < begin + bytes.size())
      running.push_back(&copies[begun++]);
    std::erase_if(running, [&](WindowedCopy* copy) {
      copy->Feed(bytes.data(), begin, begin + bytes.size());
      return copy->done();
    });
  }
  if (begun < copies.size() || !running.empty()) {
    return {Code::kInternal, "the load plan copies from parts of " + file.path + " that it does not read"};
  }
  return OkStatus();
}

}  // namespace

Result<LoadStats> ExecuteLoad(const LoadPlan& plan, const std::vector<SourceFile>& files,
                              const std::vector<Destination>& destinations, const LoadOptions& options) {
  const auto start = Clock::now();
  CAIRN_ASSIGN_OR_RETURN(BlockBuffer buffer, BlockBuffer::Make());
  LoadStats stats;
  stats.needed_bytes = plan.needed_bytes;
  const std::span<const ReadRange> ranges(plan.ranges);
  for (size_t first = 0; first < ranges.size();) {
    size_t last = first;
    while (last < ranges.size() && ranges[last].file == ranges[first].file) ++last;
    const uint32_t file = ranges[first].file;
    if (file >= files.size())
      return Status(Code::kInternal, "the load plan reads file " + std::to_string(file) + " of " +
                                         std::to_string(files.size()));
    CAIRN_RETURN_IF_ERROR(
        LoadFile(files[file], ranges.subspan(first, last - first), destinations, options, buffer, stats));
    first = last;
  }
  stats.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return stats;
}

}  // namespace cairn
