#include "runtime/interop/import.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/formats/names.h"
#include "runtime/formats/shard.h"
#include "runtime/formats/sums.h"
#include "runtime/interop/meter.h"
#include "runtime/interop/shard_writer.h"
#include "runtime/io/file.h"
#include "runtime/io/readable.h"

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

// Of the file as it is. `read` is told of each block's bytes.
Result<Sums> SumsOf(const std::string& path, const std::function<void(uint64_t bytes)>& read) {
  CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<Readable> file, Readable::Open(path));
  Sums sums;
  CAIRN_ASSIGN_OR_RETURN(sums.file_bytes, file->Bytes());
  file->ExpectInOrder();
  std::vector<std::byte> buffer(std::min(sums.file_bytes, kBlockBytes));
  for (uint64_t block = 0; block < BlockCount(sums.file_bytes); ++block) {
    const std::span<std::byte> bytes(buffer.data(), BlockBytes(sums.file_bytes, block));
    CAIRN_RETURN_IF_ERROR(file->Read(block * kBlockBytes, bytes));
    sums.blocks.push_back(Hash128Of(bytes));
    read(bytes.size());
  }
  return sums;
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

Result<Index> LinkArrays(const StoredSource& source, const std::string& folder, const Progress& progress,
                         Sharing* sharing) {
  Index index;
  index.world_size = 1;
  CAIRN_ASSIGN_OR_RETURN(index.saved, source.Layout());
  std::erase_if(index.saved.boxes, [](const SavedBox& saved) { return saved.box.empty(); });
  uint64_t done = 0, total = 0;
  for (const std::string& file : source.files()) {
    CAIRN_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(file));
    total += bytes;
  }
  *sharing = Sharing::kReflink;
  for (const std::string& file : source.files()) {
    const auto number = static_cast<uint32_t>(index.files.size() + 1);
    const std::string shard = folder + "/" + names::Shard(number);
    CAIRN_ASSIGN_OR_RETURN(const Sharing how, ShareFile(file, shard));
    *sharing = std::max(*sharing, how);
    CAIRN_ASSIGN_OR_RETURN(const Sums sums, SumsOf(shard, [&](uint64_t bytes) {
                             done += bytes;
                             if (progress) progress(done, total);
                           }));
    CAIRN_RETURN_IF_ERROR(PublishFile(folder + "/" + names::Sums(number), EncodeSums(sums)));
    index.files.push_back({number, sums.file_bytes, sums.Root()});
  }
  return index;
}

}  // namespace cairn
