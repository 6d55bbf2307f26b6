#include "runtime/interop/box_file.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "planner/saved_layout.h"
#include "runtime/formats/shard.h"
#include "runtime/interop/shard_writer.h"

namespace cairn {
namespace {

Status WriteData(ShardWriter& writer, const ShardLayout& layout, std::span<const uint32_t> written,
                 const Index& part, const BoxBytes& bytes) {
  CAIRN_RETURN_IF_ERROR(writer.Write(std::as_bytes(std::span(layout.header))));
  std::vector<size_t> order(written.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return layout.offsets[a] < layout.offsets[b]; });
  for (const size_t i : order) {
    const std::byte* const data = bytes(written[i]);
    if (data == nullptr)
      return {Code::kInvalid,
              "the bytes of \"" + part.saved.arrays[written[i]].name + "\" were not to be had"};
    CAIRN_RETURN_IF_ERROR(writer.Write({data, layout.bytes[i]}));
  }
  return OkStatus();
}

}  // namespace

Result<Index> WriteBoxFile(const std::string& folder, uint32_t number, std::span<const ArrayBox> boxes,
                           const BoxBytes& bytes) {
  Index part;
  part.world_size = 1;
  std::vector<ShardTensor> tensors;
  std::vector<uint32_t> written;  // by tensor: position in `boxes`
  for (uint32_t i = 0; i < boxes.size(); ++i) {
    const auto& [array, box] = boxes[i];
    CAIRN_RETURN_IF_ERROR(CheckArray(array));
    CAIRN_RETURN_IF_ERROR(CheckBox(array, box));
    part.saved.arrays.push_back(array);
    if (box.empty()) continue;
    tensors.push_back({array.name, array.dtype, box});
    written.push_back(i);
  }
  if (!tensors.empty()) {
    CAIRN_ASSIGN_OR_RETURN(const ShardLayout layout, LayOutShard(tensors));
    CAIRN_ASSIGN_OR_RETURN(ShardWriter writer, ShardWriter::Create(folder, number));
    CAIRN_RETURN_IF_ERROR(WriteData(writer, layout, written, part, bytes));
    CAIRN_ASSIGN_OR_RETURN(const ShardRecord record, std::move(writer).Finish());
    part.files.push_back(record);
    for (size_t i = 0; i < written.size(); ++i)
      part.saved.boxes.push_back({written[i], 0, layout.offsets[i], tensors[i].box});
  }
  part.saved.world_size = part.world_size;
  part.saved.files = FilesOf(part.files);
  const Status valid = ValidateIndex(part);
  if (!valid.ok()) return Status(Code::kInvalid, valid.message());
  return part;
}

Result<Index> MergeParts(std::span<const Index> parts, uint32_t world_size) {
  Index whole;
  whole.world_size = whole.saved.world_size = world_size;
  std::unordered_map<std::string, uint32_t> array_of;
  const auto described = [](const ArraySpec& array) {
    return std::string(DTypeName(array.dtype)) + " " + array.shape.ToString();
  };
  for (const Index& part : parts) {
    std::vector<uint32_t> here;  // by array of the part: the same in the whole
    for (const ArraySpec& array : part.saved.arrays) {
      const auto [known, is_new] =
          array_of.emplace(array.name, static_cast<uint32_t>(whole.saved.arrays.size()));
      if (is_new) whole.saved.arrays.push_back(array);
      const ArraySpec& before = whole.saved.arrays[known->second];
      if (!(before == array)) {
        return Status(Code::kMismatch, "array \"" + array.name + "\" is " + described(before) +
                                           " on one rank and " + described(array) + " on another");
      }
      here.push_back(known->second);
    }
    const auto first_file = static_cast<uint32_t>(whole.files.size());
    whole.files.insert(whole.files.end(), part.files.begin(), part.files.end());
    for (SavedBox box : part.saved.boxes) {
      box.array = here[box.array];
      box.file += first_file;
      whole.saved.boxes.push_back(box);
    }
  }
  std::stable_sort(whole.saved.boxes.begin(), whole.saved.boxes.end(),
                   [](const SavedBox& a, const SavedBox& b) { return a.array < b.array; });
  whole.saved.files = FilesOf(whole.files);
  CAIRN_ASSIGN_OR_RETURN(const SavedIndex index, SavedIndex::Make(whole.saved));
  for (uint32_t a = 0; a < whole.saved.arrays.size(); ++a) {
    const auto found = index.BoxesIn(a, Box::Whole(whole.saved.arrays[a].shape));
    if (!found.ok()) return Status(Code::kMismatch, found.status().message());
  }
  return whole;
}

}  // namespace cairn
