#include "runtime/interop/import.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "runtime/formats/shard.h"
#include "runtime/interop/meter.h"
#include "runtime/interop/shard_writer.h"

namespace cairn {
namespace {

struct Part {
  uint32_t array = 0;  // position in the index
  Box box;
};

// What goes into which file: full ones, and no array twice in one.
std::vector<std::vector<Part>> Divide(const std::vector<ArraySpec>& arrays, uint64_t file_bytes) {
  std::vector<std::vector<Part>> files;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < arrays.size(); ++i) {
    const int64_t element_bytes = DTypeBytes(arrays[i].dtype);
    for (const Box& box : Slabs(arrays[i].shape, element_bytes, file_bytes)) {
      const auto size = static_cast<uint64_t>(box.elements() * element_bytes);
      const bool again = !files.empty() && !files.back().empty() && files.back().back().array == i;
      if (files.empty() || again || bytes + size > file_bytes) {
        files.emplace_back();
        bytes = 0;
      }
      files.back().push_back({i, box});
      bytes += size;
    }
  }
  return files;
}

Status WriteFile(ArraySource& source, std::span<const NamedArray> arrays, const std::vector<Part>& parts,
                 const std::string& folder, Meter& meter, Index* index) {
  const auto file = static_cast<uint32_t>(index->files.size());
  std::vector<ShardTensor> tensors;
  for (const Part& part : parts) {
    const ArraySpec& array = index->saved.arrays[part.array];
    tensors.push_back({array.name, array.dtype, part.box});
  }
  CAIRN_ASSIGN_OR_RETURN(const ShardLayout layout, LayOutShard(tensors));
  CAIRN_ASSIGN_OR_RETURN(ShardWriter writer, ShardWriter::Create(folder, file + 1));
  CAIRN_RETURN_IF_ERROR(writer.Write(std::as_bytes(std::span(layout.header))));
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return layout.offsets[a] < layout.offsets[b]; });
  for (const size_t i : order) {
    const Status streamed = Stream(source, arrays[parts[i].array].array, parts[i].box,
                                   [&](const Box&, std::span<const std::byte> bytes, uint64_t) {
                                     meter(bytes.size());
                                     return writer.Write(bytes);
                                   });
    if (!streamed.ok()) return streamed;
  }
  for (size_t i = 0; i < parts.size(); ++i)
    index->saved.boxes.push_back({parts[i].array, file, layout.offsets[i], parts[i].box});
  CAIRN_ASSIGN_OR_RETURN(const ShardRecord record, std::move(writer).Finish());
  index->files.push_back(record);
  return OkStatus();
}

}  // namespace

Result<Index> ImportArrays(ArraySource& source, std::span<const NamedArray> arrays, const std::string& folder,
                           const Progress& progress, uint64_t file_bytes) {
  Index index;
  index.world_size = 1;
  for (const NamedArray& named : arrays) {
    index.saved.arrays.push_back(source.arrays()[named.array]);
    index.saved.arrays.back().name = named.name;
  }
  Meter meter(source, arrays, progress);
  for (const std::vector<Part>& parts : Divide(index.saved.arrays, file_bytes))
    CAIRN_RETURN_IF_ERROR(WriteFile(source, arrays, parts, folder, meter, &index));
  std::stable_sort(index.saved.boxes.begin(), index.saved.boxes.end(),
                   [](const SavedBox& a, const SavedBox& b) { return a.array < b.array; });
  return index;
}

}  // namespace cairn
