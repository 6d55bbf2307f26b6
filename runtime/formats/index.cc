#include "runtime/formats/index.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "runtime/formats/checked_size.h"
#include "runtime/formats/index_generated.h"
#include "runtime/formats/little_endian.h"

// The layout is described in docs/design/formats.md, section 4.

namespace cairn {
namespace {

constexpr std::string_view kMagic = "CAIRNIDX";
constexpr uint32_t kVersion = 1;
constexpr size_t kHashOffset = 32;
constexpr size_t kHeaderBytes = 48;  // a multiple of 16: the payload is aligned when the file is
constexpr uint64_t kMaxPayloadBytes = FLATBUFFERS_MAX_BUFFER_SIZE - 1024;

Status Damage(std::string what) { return {Code::kDamage, "index: " + std::move(what)}; }

// Everything before the hash, and the hash of that and the payload.
std::string Header(std::string_view payload) {
  std::string header(kMagic);
  AppendLittleEndian<uint32_t>(header, kVersion);
  AppendLittleEndian<uint32_t>(header, kHeaderBytes);
  AppendLittleEndian<uint64_t>(header, payload.size());
  AppendLittleEndian<uint64_t>(header, 0);
  const Hash128 hash = Hash128Of(payload);
  return header.append(reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size());
}

uint64_t EstimatedBytes(const Index& index) {
  uint64_t bytes = 1024 + 32 * index.files.size();
  for (const ArraySpec& array : index.saved.arrays) bytes += 160 + array.name.size();
  for (const SavedBox& box : index.saved.boxes) bytes += 12 + 16 * static_cast<uint64_t>(box.box.rank());
  return bytes;
}

Status ValidateBox(const Index& index, const SavedBox& saved) {
  if (saved.array >= index.saved.arrays.size())
    return Damage("a box of array " + std::to_string(saved.array) + ", which is not there");
  const ArraySpec& array = index.saved.arrays[saved.array];
  const auto bad = [&](std::string_view what) {
    return Damage("array \"" + array.name + "\", box at " + saved.box.offset.ToString() + " of " +
                  saved.box.extent.ToString() + ": " + std::string(what));
  };
  if (saved.box.extent.size() != array.shape.size() || saved.box.offset.size() != array.shape.size()) {
    return bad("has another number of dimensions than the array");
  }
  for (int d = 0; d < array.shape.size(); ++d) {
    if (saved.box.offset[d] < 0 || saved.box.extent[d] <= 0 || saved.box.extent[d] > array.shape[d] ||
        saved.box.offset[d] > array.shape[d] - saved.box.extent[d]) {
      return bad("is empty or not inside shape " + array.shape.ToString());
    }
  }
  if (saved.file >= index.files.size())
    return bad("lies in file " + std::to_string(saved.file) + ", which is not there");
  const uint64_t file_bytes = index.files[saved.file].bytes;
  const auto bytes = CheckedBytes(saved.box.extent, array.dtype);
  if (!bytes || *bytes > file_bytes || saved.file_offset > file_bytes - *bytes) {
    return bad("does not lie inside its file of " + std::to_string(file_bytes) + " bytes");
  }
  return OkStatus();
}

// The boxes of one array of the payload, which the verifier has approved.
Status ReadBoxes(const fbs::Array& array, uint32_t number, int rank, std::vector<SavedBox>& boxes) {
  const uint64_t count = array.box_file()->size();
  const uint64_t range = 2 * static_cast<uint64_t>(rank);
  if (array.box_offset()->size() != count || array.box_range()->size() != count * range) {
    return Damage("array \"" + array.name()->str() + "\": its lists of boxes have different lengths");
  }
  for (uint32_t i = 0; i < count; ++i) {
    SavedBox& saved = boxes.emplace_back();
    saved.array = number;
    saved.file = array.box_file()->Get(i);
    saved.file_offset = array.box_offset()->Get(i);
    for (int d = 0; d < rank; ++d) {
      const auto at = static_cast<flatbuffers::uoffset_t>(i * range + static_cast<uint64_t>(d));
      saved.box.offset.push_back(array.box_range()->Get(at));
      saved.box.extent.push_back(array.box_range()->Get(at + static_cast<flatbuffers::uoffset_t>(rank)));
    }
  }
  return OkStatus();
}

Result<Index> ReadPayload(const fbs::Index& payload, uint64_t payload_bytes) {
  // Tables may share their strings and vectors, so a small file could describe a huge index. An honest one shares nothing.
  uint64_t described_bytes = 0;
  for (const fbs::Array* array : *payload.arrays()) {
    described_bytes += array->name()->size() + 12 * static_cast<uint64_t>(array->box_file()->size());
  }
  if (described_bytes > payload_bytes) return Damage("its arrays share their boxes or names");

  Index index;
  index.world_size = payload.world_size();
  for (const fbs::File* file : *payload.files()) {
    ShardRecord& record = index.files.emplace_back();
    record.number = file->number();
    record.bytes = file->bytes();
    std::memcpy(record.sums_root.bytes.data(), file->sums_root()->data(), record.sums_root.bytes.size());
  }
  for (const fbs::Array* array : *payload.arrays()) {
    const auto number = static_cast<uint32_t>(index.saved.arrays.size());
    ArraySpec& spec = index.saved.arrays.emplace_back();
    spec.name = array->name()->str();
    if (array->dtype() >= kDTypeCount) {
      return Damage("array \"" + spec.name + "\" has dtype " + std::to_string(array->dtype()) +
                    ", this reader knows " + std::to_string(kDTypeCount));
    }
    spec.dtype = static_cast<DType>(array->dtype());
    spec.fortran = array->fortran();
    if (array->shape()->size() > kMaxRank)
      return Damage("array \"" + spec.name + "\" has more than 8 dimensions");
    for (int64_t n : *array->shape()) spec.shape.push_back(n);
    CAIRN_RETURN_IF_ERROR(ReadBoxes(*array, number, spec.shape.size(), index.saved.boxes));
  }
  return index;
}

}  // namespace

Status ValidateIndex(const Index& index) {
  if (index.world_size == 0) return Damage("the world size is 0");
  std::unordered_set<uint32_t> numbers;
  for (const ShardRecord& file : index.files) {
    if (file.number == 0 || !numbers.insert(file.number).second) {
      return Damage("file number " + std::to_string(file.number) + " is 0 or occurs twice");
    }
  }
  std::unordered_set<std::string_view> names;
  for (const ArraySpec& array : index.saved.arrays) {
    if (array.name.empty() || !names.insert(array.name).second) {
      return Damage("array name \"" + array.name + "\" is empty or occurs twice");
    }
    if (!CheckedBytes(array.shape, array.dtype)) {
      return Damage("array \"" + array.name + "\" has the impossible shape " + array.shape.ToString());
    }
  }
  const auto by_array = [](const SavedBox& a, const SavedBox& b) { return a.array < b.array; };
  if (!std::is_sorted(index.saved.boxes.begin(), index.saved.boxes.end(), by_array)) {
    return Damage("the boxes are not grouped by array");
  }
  for (const SavedBox& saved : index.saved.boxes) CAIRN_RETURN_IF_ERROR(ValidateBox(index, saved));
  return OkStatus();
}

Result<std::string> EncodeIndex(const Index& index) {
  if (Status status = ValidateIndex(index); !status.ok()) return Status(Code::kInvalid, status.message());
  if (EstimatedBytes(index) > kMaxPayloadBytes) {
    return Status(Code::kInvalid,
                  "index: " + std::to_string(index.saved.boxes.size()) + " boxes do not fit its 2 GiB");
  }
  flatbuffers::FlatBufferBuilder builder(EstimatedBytes(index));
  std::vector<fbs::File> files;
  files.reserve(index.files.size());
  for (const ShardRecord& record : index.files) {
    files.emplace_back(record.bytes, record.number,
                       flatbuffers::span<const uint8_t, 16>(record.sums_root.bytes));
  }
  std::vector<flatbuffers::Offset<fbs::Array>> arrays;
  auto box = index.saved.boxes.begin();
  for (uint32_t a = 0; a < index.saved.arrays.size(); ++a) {
    const ArraySpec& spec = index.saved.arrays[a];
    std::vector<uint32_t> box_file;
    std::vector<uint64_t> box_offset;
    std::vector<int64_t> box_range;
    for (; box != index.saved.boxes.end() && box->array == a; ++box) {
      box_file.push_back(box->file);
      box_offset.push_back(box->file_offset);
      box_range.insert(box_range.end(), box->box.offset.begin(), box->box.offset.end());
      box_range.insert(box_range.end(), box->box.extent.begin(), box->box.extent.end());
    }
    arrays.push_back(fbs::CreateArray(
        builder, builder.CreateString(spec.name), static_cast<uint8_t>(spec.dtype), spec.fortran,
        builder.CreateVector(spec.shape.begin(), static_cast<size_t>(spec.shape.size())),
        builder.CreateVector(box_file), builder.CreateVector(box_offset), builder.CreateVector(box_range)));
  }
  builder.Finish(fbs::CreateIndex(builder, index.world_size, builder.CreateVectorOfStructs(files),
                                  builder.CreateVector(arrays)));
  const std::string_view payload(reinterpret_cast<const char*>(builder.GetBufferPointer()),
                                 builder.GetSize());
  return Header(payload).append(payload);
}

Result<Index> DecodeIndex(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes)
    return Damage("has " + std::to_string(bytes.size()) + " bytes, fewer than its header");
  if (!bytes.starts_with(kMagic)) return Damage("wrong magic at byte 0");
  const auto version = LittleEndianAt<uint32_t>(bytes, 8);
  if (version != kVersion)
    return Damage("version " + std::to_string(version) + " at byte 8, this reader knows 1");
  std::string_view payload = bytes.substr(kHeaderBytes);
  if (const auto length = LittleEndianAt<uint64_t>(bytes, 16); length != payload.size()) {
    return Damage("has " + std::to_string(payload.size()) + " bytes after its header instead of " +
                  std::to_string(length));
  }
  const std::string header = Header(payload);
  if (bytes.substr(0, kHashOffset) != header.substr(0, kHashOffset)) return Damage("its header is malformed");
  if (bytes.substr(kHashOffset, 16) != header.substr(kHashOffset))
    return Damage("the checksum at byte 32 does not match");

  std::string aligned;
  if (reinterpret_cast<uintptr_t>(payload.data()) % alignof(uint64_t) != 0) {
    aligned = payload;
    payload = aligned;
  }
  const auto* data = reinterpret_cast<const uint8_t*>(payload.data());
  // An Array takes more than 32 bytes, so an honest index never has more tables than this.
  flatbuffers::Verifier verifier(data, payload.size(), /*max_depth=*/8,
                                 static_cast<flatbuffers::uoffset_t>(payload.size() / 32 + 2));
  if (payload.size() > kMaxPayloadBytes || !fbs::VerifyIndexBuffer(verifier))
    return Damage("its payload is malformed");
  CAIRN_ASSIGN_OR_RETURN(Index index, ReadPayload(*fbs::GetIndex(data), payload.size()));
  CAIRN_RETURN_IF_ERROR(ValidateIndex(index));
  return index;
}

}  // namespace cairn
