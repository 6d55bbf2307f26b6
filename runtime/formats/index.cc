#include "runtime/formats/index.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "runtime/formats/checked_size.h"
#include "runtime/formats/index_generated.h"
#include "runtime/formats/little_endian.h"
#include "runtime/formats/newer_version.h"

// The layout is described in docs/design/formats.md, section 4.

namespace cairn {
namespace {

constexpr std::string_view kMagic = "CAIRNIDX";
constexpr uint32_t kVersion = 1;
constexpr size_t kOwnHashOffset = 24;
constexpr size_t kHashOffset = 32;
constexpr size_t kHeaderBytes = 48;  // a multiple of 16: the payload is aligned when the file is
constexpr uint64_t kMaxPayloadBytes = FLATBUFFERS_MAX_BUFFER_SIZE - 1024;

Status Damage(std::string what) { return {Code::kDamage, "index: " + std::move(what)}; }

std::string Header(std::string_view payload) {
  std::string header(kMagic);
  AppendLittleEndian<uint32_t>(header, kVersion);
  AppendLittleEndian<uint32_t>(header, kHeaderBytes);
  AppendLittleEndian<uint64_t>(header, payload.size());
  const Hash128 own = Hash128Of(header), hash = Hash128Of(payload);
  header.append(reinterpret_cast<const char*>(own.bytes.data()), kHashOffset - kOwnHashOffset);
  return header.append(reinterpret_cast<const char*>(hash.bytes.data()), hash.bytes.size());
}

// What every version keeps: magic, version, and a checksum of the header, by which a newer version is told from damage.
Status CheckVersion(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return Damage("wrong magic at byte 0");
  const Hash128 own = Hash128Of(bytes.substr(0, kOwnHashOffset));
  const std::string_view found = bytes.substr(kOwnHashOffset, kHashOffset - kOwnHashOffset);
  if (std::memcmp(found.data(), own.bytes.data(), found.size()) != 0)
    return Damage("the checksum of its header at byte 24 does not match");
  const auto version = LittleEndianAt<uint32_t>(bytes, 8);
  if (version > kVersion) return NewerVersion("index", version, kVersion);
  if (version != kVersion) return Damage("version " + std::to_string(version) + " never was");
  return OkStatus();
}

uint64_t EstimatedBytes(const Index& index) {
  uint64_t bytes = 1024 + 32 * index.files.size();
  for (const ArraySpec& array : index.saved.arrays) bytes += 160 + array.name.size();
  for (const SavedBox& box : index.saved.boxes) bytes += 12 + 16 * static_cast<uint64_t>(box.box.rank());
  for (const Cuts& cuts : index.saved.grids.cuts) bytes += 32 + 16 * cuts.runs().size();
  bytes += index.saved.grids.rules.size() * (64 + 16 * kMaxAxes + 4 * kMaxRank);
  return bytes;
}

Status ValidateBox(const Index& index, const SavedBox& saved) {
  if (saved.array >= index.saved.arrays.size())
    return Damage("a box of array " + std::to_string(saved.array) + ", which is not there");
  const ArraySpec& array = index.saved.arrays[saved.array];
  if (index.saved.grids.Has(saved.array))
    return Damage("array \"" + array.name + "\" has a rule and yet a box");
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

// The name of an array that another one has, too; nothing when all differ. Hashes are compared first: sorting them costs a fraction of a set of names.
std::optional<std::string_view> NameThatOccursTwice(const std::vector<ArraySpec>& arrays) {
  std::vector<uint64_t> hashes;
  hashes.reserve(arrays.size());
  for (const ArraySpec& array : arrays) {
    const Hash128 hash = Hash128Of(array.name);
    std::memcpy(&hashes.emplace_back(), hash.bytes.data(), sizeof(uint64_t));
  }
  std::sort(hashes.begin(), hashes.end());
  if (std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end()) return std::nullopt;
  std::unordered_set<std::string_view> names;
  for (const ArraySpec& array : arrays) {
    if (!names.insert(array.name).second) return array.name;
  }
  return std::nullopt;
}

Status ValidateGrids(const Index& index) {
  const SavedLayout& saved = index.saved;
  if (saved.grids.rules.empty()) return OkStatus();
  if (saved.world_size != index.world_size || saved.files.size() != index.files.size())
    return Damage("its rules are for another save");
  for (size_t f = 0; f < saved.files.size(); ++f) {
    if (saved.files[f].number != index.files[f].number || saved.files[f].bytes != index.files[f].bytes)
      return Damage("its rules are for another save");
    if (f > 0 && saved.files[f].number <= saved.files[f - 1].number)
      return Damage("file number " + std::to_string(saved.files[f].number) + " is out of order");
  }
  if (const Status status = CheckGrids(saved.grids, saved.world_size); !status.ok())
    return Damage(status.message());
  for (size_t a = 0; a < saved.arrays.size(); ++a) {
    if (saved.grids.Has(a) && !(Grid(saved.grids, saved.grids.rule_of[a]).shape() == saved.arrays[a].shape))
      return Damage("array \"" + saved.arrays[a].name + "\" has a rule of another shape");
  }
  return OkStatus();
}

// The boxes of one array of the payload, which the verifier has approved.
Status ReadBoxes(const fbs::Array& array, uint32_t number, int rank, std::vector<SavedBox>& boxes) {
  const uint64_t range = 2 * static_cast<uint64_t>(rank);
  if (array.box_file() == nullptr || array.box_offset() == nullptr || array.box_range() == nullptr)
    return Damage("array \"" + array.name()->str() + "\" has neither a rule nor boxes");
  const uint64_t count = array.box_file()->size();
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

Status ReadGrids(const fbs::Index& payload, GridTable& grids) {
  if (payload.cuts() != nullptr) {
    std::vector<Cuts::Run> runs;
    for (const fbs::Cuts* cuts : *payload.cuts()) {
      runs.clear();
      for (const fbs::Run* run : *cuts->runs()) runs.push_back({run->parts(), run->length()});
      auto made = Cuts::FromRuns(runs);
      if (!made.ok())
        return Damage("cuts " + std::to_string(grids.cuts.size()) + ": " + made.status().message());
      grids.cuts.push_back(*std::move(made));
    }
  }
  if (payload.rules() == nullptr) return OkStatus();
  for (const fbs::Rule* rule : *payload.rules()) {
    if (rule->axes()->size() > kMaxAxes || rule->cuts()->size() > kMaxRank)
      return Damage("rule " + std::to_string(grids.rules.size()) + " has too many axes or dimensions");
    GridRule& made = grids.rules.emplace_back();
    made.first_rank = rule->first_rank();
    for (const fbs::Axis* axis : *rule->axes())
      made.axes.push_back({axis->count(), axis->rank_stride(), axis->part_stride(), axis->dim()});
    made.cuts.assign(rule->cuts()->begin(), rule->cuts()->end());
  }
  return OkStatus();
}

// Tables may share their strings and vectors, so a small file could describe a huge index. An honest one shares nothing.
bool SharesContent(const fbs::Index& payload, uint64_t payload_bytes) {
  uint64_t described_bytes = 0;
  for (const fbs::Array* array : *payload.arrays()) {
    described_bytes += array->name()->size();
    if (array->box_file() != nullptr)
      described_bytes += 12 * static_cast<uint64_t>(array->box_file()->size());
  }
  if (payload.cuts() != nullptr) {
    for (const fbs::Cuts* cuts : *payload.cuts())
      described_bytes += sizeof(fbs::Run) * static_cast<uint64_t>(cuts->runs()->size());
  }
  if (payload.rules() != nullptr) {
    for (const fbs::Rule* rule : *payload.rules())
      described_bytes += sizeof(fbs::Axis) * static_cast<uint64_t>(rule->axes()->size());
  }
  return described_bytes > payload_bytes;
}

Result<Index> ReadPayload(const fbs::Index& payload, uint64_t payload_bytes) {
  if (SharesContent(payload, payload_bytes)) return Damage("its arrays share their boxes or names");
  Index index;
  index.world_size = payload.world_size();
  index.saved.world_size = payload.world_size();
  index.saved.min_split_bytes = payload.min_split_bytes();
  index.files.reserve(payload.files()->size());
  for (const fbs::File* file : *payload.files()) {
    ShardRecord& record = index.files.emplace_back();
    record.number = file->number();
    record.bytes = file->bytes();
    std::memcpy(record.sums_root.bytes.data(), file->sums_root()->data(), record.sums_root.bytes.size());
  }
  index.saved.files = FilesOf(index.files);
  GridTable& grids = index.saved.grids;
  CAIRN_RETURN_IF_ERROR(ReadGrids(payload, grids));
  if (const Status status = CheckGrids(grids, index.world_size); !status.ok())
    return Damage(status.message());

  index.saved.arrays.reserve(payload.arrays()->size());
  for (const fbs::Array* array : *payload.arrays()) {
    const auto number = static_cast<uint32_t>(index.saved.arrays.size());
    ArraySpec& spec = index.saved.arrays.emplace_back();
    spec.name = array->name()->str();
    if (array->dtype() >= kDTypeCount) {
      return Status(Code::kMismatch, "index: array \"" + spec.name + "\" has element type number " +
                                         std::to_string(array->dtype()) +
                                         ", which a newer Cairn must have given it, this one reads up to " +
                                         std::to_string(kDTypeCount - 1) + ": update this one");
    }
    spec.dtype = static_cast<DType>(array->dtype());
    spec.fortran = array->fortran();
    if (!grids.rules.empty()) grids.rule_of.push_back(array->rule());
    if (array->rule() != kNoRule) {
      if (array->rule() >= grids.rules.size())
        return Damage("array \"" + spec.name + "\" has a rule that is not there");
      spec.shape = Grid(grids, array->rule()).shape();
      continue;
    }
    if (array->shape() == nullptr)
      return Damage("array \"" + spec.name + "\" has neither a rule nor a shape");
    if (array->shape()->size() > kMaxRank)
      return Damage("array \"" + spec.name + "\" has more than 8 dimensions");
    for (int64_t n : *array->shape()) spec.shape.push_back(n);
    CAIRN_RETURN_IF_ERROR(ReadBoxes(*array, number, spec.shape.size(), index.saved.boxes));
  }
  return index;
}

}  // namespace

std::vector<SavedFile> FilesOf(const std::vector<ShardRecord>& records) {
  std::vector<SavedFile> files;
  files.reserve(records.size());
  for (const ShardRecord& record : records) files.push_back({record.number, record.bytes});
  return files;
}

Status ValidateIndex(const Index& index) {
  if (index.world_size == 0) return Damage("the world size is 0");
  std::vector<uint32_t> numbers;
  numbers.reserve(index.files.size());
  for (const ShardRecord& file : index.files) numbers.push_back(file.number);
  if (!std::is_sorted(numbers.begin(), numbers.end())) std::sort(numbers.begin(), numbers.end());
  if (!numbers.empty() && numbers[0] == 0) return Damage("file number 0 occurs");
  if (const auto twice = std::adjacent_find(numbers.begin(), numbers.end()); twice != numbers.end())
    return Damage("file number " + std::to_string(*twice) + " occurs twice");
  if (const Status status = ValidateGrids(index); !status.ok()) return status;
  if (const auto twice = NameThatOccursTwice(index.saved.arrays))
    return Damage("array name \"" + std::string(*twice) + "\" occurs twice");
  for (const ArraySpec& array : index.saved.arrays) {
    if (array.name.empty()) return Damage("an array has no name");
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
  const GridTable& grids = index.saved.grids;
  std::vector<flatbuffers::Offset<fbs::Cuts>> cuts;
  for (const Cuts& c : grids.cuts) {
    std::vector<fbs::Run> runs;
    for (const Cuts::Run& run : c.runs()) runs.emplace_back(run.parts, run.length);
    cuts.push_back(fbs::CreateCuts(builder, builder.CreateVectorOfStructs(runs)));
  }
  std::vector<flatbuffers::Offset<fbs::Rule>> rules;
  for (const GridRule& rule : grids.rules) {
    std::vector<fbs::Axis> axes;
    for (const GridAxis& a : rule.axes) axes.emplace_back(a.count, a.rank_stride, a.part_stride, a.dim);
    rules.push_back(fbs::CreateRule(builder, rule.first_rank, builder.CreateVectorOfStructs(axes),
                                    builder.CreateVector(rule.cuts)));
  }
  std::vector<flatbuffers::Offset<fbs::Array>> arrays;
  arrays.reserve(index.saved.arrays.size());
  auto box = index.saved.boxes.begin();
  for (uint32_t a = 0; a < index.saved.arrays.size(); ++a) {
    const ArraySpec& spec = index.saved.arrays[a];
    const auto name = builder.CreateString(spec.name);
    if (grids.Has(a)) {
      arrays.push_back(fbs::CreateArray(builder, name, static_cast<uint8_t>(spec.dtype), spec.fortran, 0, 0,
                                        0, 0, grids.rule_of[a]));
      continue;
    }
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
        builder, name, static_cast<uint8_t>(spec.dtype), spec.fortran,
        builder.CreateVector(spec.shape.begin(), static_cast<size_t>(spec.shape.size())),
        builder.CreateVector(box_file), builder.CreateVector(box_offset), builder.CreateVector(box_range)));
  }
  const auto stored_files = builder.CreateVectorOfStructs(files);
  const auto stored_arrays = builder.CreateVector(arrays);
  builder.Finish(fbs::CreateIndex(builder, index.world_size, stored_files, stored_arrays,
                                  index.saved.min_split_bytes, builder.CreateVector(cuts),
                                  builder.CreateVector(rules)));
  const std::string_view payload(reinterpret_cast<const char*>(builder.GetBufferPointer()),
                                 builder.GetSize());
  return Header(payload).append(payload);
}

Result<Index> DecodeIndex(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes)
    return Damage("has " + std::to_string(bytes.size()) + " bytes, fewer than its header");
  CAIRN_RETURN_IF_ERROR(CheckVersion(bytes));
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
  // The smallest table, of an array with a rule, takes more than 16 bytes with its name.
  flatbuffers::Verifier verifier(data, payload.size(), /*max_depth=*/8,
                                 static_cast<flatbuffers::uoffset_t>(payload.size() / 16 + 2));
  if (payload.size() > kMaxPayloadBytes || !fbs::VerifyIndexBuffer(verifier))
    return Damage("its payload is malformed");
  CAIRN_ASSIGN_OR_RETURN(Index index, ReadPayload(*fbs::GetIndex(data), payload.size()));
  CAIRN_RETURN_IF_ERROR(ValidateIndex(index));
  return index;
}

}  // namespace cairn
