#include "runtime/formats/shard.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "runtime/formats/checked_size.h"
#include "runtime/formats/little_endian.h"

// The layout is described in docs/design/formats.md, section 2.

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;  // what is written, as it lies in the file
using Parsed = nlohmann::json;        // an ordered one would search all keys for each

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the safetensors library refuses longer ones
constexpr const char* kMetadata = "__metadata__";
constexpr const char* kShardingInfo = "DCP_SHARDING_INFO";
constexpr const char* kSavedOffsets = "saved_offsets";

// As safetensors counts: values, not elements.
Json ToJson(Dims dims, DType dtype) {
  if (dims.size() > 0) dims[dims.size() - 1] *= DTypeValues(dtype);
  Json array = Json::array();
  for (int64_t n : dims) array.push_back(n);
  return array;
}

// The other way round. Nothing where it begins or ends inside an element.
std::optional<Dims> ToElements(Dims dims, DType dtype) {
  const int values = DTypeValues(dtype);
  if (values == 1) return dims;
  if (dims.size() == 0 || dims[dims.size() - 1] % values != 0) return std::nullopt;
  dims[dims.size() - 1] /= values;
  return dims;
}

Result<std::string> Dump(const Json& json) {
  try {
    return json.dump();
  } catch (const Json::exception& e) {
    return Status(Code::kInvalid, std::string("a tensor's name is no UTF-8: ") + e.what());
  }
}

Status Damage(std::string what) { return {Code::kDamage, "safetensors header: " + std::move(what)}; }

std::string Quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

// A list of at most `max` integers that fit 63 bits and are not negative.
std::optional<std::vector<int64_t>> ToIntegers(const Parsed& value, size_t max) {
  if (!value.is_array() || value.size() > max) return std::nullopt;
  std::vector<int64_t> out;
  for (const Parsed& n : value) {
    if (!n.is_number_unsigned() || n.get<uint64_t>() > INT64_MAX) return std::nullopt;
    out.push_back(n.get<int64_t>());
  }
  return out;
}

std::optional<Dims> ToDims(const Parsed& value) {
  const auto integers = ToIntegers(value, kMaxRank);
  if (!integers) return std::nullopt;
  Dims dims;
  for (int64_t n : *integers) dims.push_back(n);
  return dims;
}

Result<ParsedShard::Entry> ParseEntry(const std::string& name, const Parsed& value, uint64_t data_begin) {
  ParsedShard::Entry entry;
  entry.tensor.fqn = name;
  if (!value.is_object()) return Damage("the entry of " + Quoted(name) + " is no object");
  const auto dtype = value.find("dtype"), shape = value.find("shape"), offsets = value.find("data_offsets");
  if (dtype == value.end() || shape == value.end() || offsets == value.end()) {
    return Damage(Quoted(name) + " lacks dtype, shape or data_offsets");
  }
  if (!dtype->is_string()) return Damage("the dtype of " + Quoted(name) + " is no text");
  const auto& type = dtype->get_ref<const std::string&>();
  const auto parsed = ParseDType(type);
  if (!parsed) {
    return Damage(Quoted(name) + " is of dtype " + Quoted(type) +
                  ", which Cairn does not know: convert it to another one first");
  }
  entry.tensor.dtype = *parsed;
  const auto counted = ToDims(*shape);
  if (!counted) return Damage(Quoted(name) + " has a malformed shape, or more than 8 dimensions");
  const auto extent = ToElements(*counted, *parsed);
  if (!extent) {
    const std::string values = std::to_string(DTypeValues(*parsed));
    return Status(Code::kMismatch,
                  "safetensors header: " + Quoted(name) + " is " + type + " of shape " + counted->ToString() +
                      ": " + values + " values of this type share " + std::to_string(DTypeBytes(*parsed)) +
                      " bytes, which are not parted, so its last dimension has to be a multiple of " +
                      values + ": pad it, or give the tensor another shape, before it is read");
  }
  entry.tensor.box = Box::Whole(*extent);
  const auto range = ToIntegers(*offsets, 2);
  const auto bytes = CheckedBytes(*extent, *parsed);
  if (!range || range->size() != 2 || !bytes || (*range)[1] < (*range)[0] ||
      static_cast<uint64_t>((*range)[1] - (*range)[0]) != *bytes) {
    return Damage("data_offsets of " + Quoted(name) + " do not fit its shape " + counted->ToString());
  }
  entry.offset = data_begin + static_cast<uint64_t>((*range)[0]);
  entry.bytes = *bytes;
  return entry;
}

Status ApplyShardingInfo(const Parsed& metadata, std::vector<ParsedShard::Entry>& entries) {
  if (!metadata.is_object()) return Damage("__metadata__ is no object");
  const auto text = metadata.find(kShardingInfo);
  if (text == metadata.end()) return OkStatus();
  if (!text->is_string()) return Damage("DCP_SHARDING_INFO is no string");
  const Parsed info = Parsed::parse(text->get_ref<const std::string&>(), nullptr, false);
  if (!info.is_object()) return Damage("DCP_SHARDING_INFO is no JSON object");
  for (ParsedShard::Entry& entry : entries) {
    const auto it = info.find(entry.tensor.fqn);
    if (it == info.end()) continue;
    const auto offsets = it->is_object() ? it->find(kSavedOffsets) : it->end();
    const auto counted = it->is_object() && offsets != it->end() ? ToDims(*offsets) : std::nullopt;
    const Dims& extent = entry.tensor.box.extent;
    const auto offset = counted ? ToElements(*counted, entry.tensor.dtype) : std::nullopt;
    if (!offset || offset->size() != extent.size()) {
      return Damage("saved_offsets of " + Quoted(entry.tensor.fqn) + " are missing or do not fit its shape");
    }
    for (int d = 0; d < extent.size(); ++d) {
      if ((*offset)[d] > INT64_MAX - extent[d])
        return Damage("saved_offsets of " + Quoted(entry.tensor.fqn) + " overflow");
    }
    entry.tensor.box.offset = *offset;
  }
  return OkStatus();
}

// Positions in `tensors`, as they lie in the file.
std::vector<size_t> FileOrder(std::span<const ShardTensor> tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return DTypeAlignment(tensors[a].dtype) > DTypeAlignment(tensors[b].dtype);
  });
  return order;
}

// Lays out everything but __metadata__, which is `metadata`.
Result<ShardLayout> LayOut(std::span<const ShardTensor> tensors, bool empty_allowed, const Json& metadata) {
  ShardLayout layout;
  layout.offsets.resize(tensors.size());
  layout.bytes.resize(tensors.size());
  Json header = {{kMetadata, metadata}};
  std::set<std::string_view> names;
  uint64_t end = 0;
  // push_back on the underlying vector: operator[] would search all earlier keys.
  auto& header_members = header.get_ref<Json::object_t&>();
  for (size_t i : FileOrder(tensors)) {
    const ShardTensor& t = tensors[i];
    if (t.fqn.empty() || t.fqn == kMetadata || !names.insert(t.fqn).second) {
      return Status(Code::kInvalid,
                    "tensor name " + Quoted(t.fqn) + " is empty, reserved or occurs twice in one file");
    }
    const auto bytes = CheckedBytes(t.box.extent, t.dtype);
    if (!bytes || (*bytes == 0 && !empty_allowed) || *bytes > static_cast<uint64_t>(INT64_MAX) - end) {
      return Status(Code::kInvalid,
                    "tensor " + Quoted(t.fqn) + ": extent " + t.box.extent.ToString() +
                        " is empty, too large, or without a dimension for several values an element");
    }
    layout.offsets[i] = end;
    layout.bytes[i] = *bytes;
    header_members.emplace_back(t.fqn, Json{{"dtype", DTypeName(t.dtype)},
                                            {"shape", ToJson(t.box.extent, t.dtype)},
                                            {"data_offsets", {end, end + *bytes}}});
    end += *bytes;
  }
  CAIRN_ASSIGN_OR_RETURN(std::string text, Dump(header));
  const uint64_t begin =
      (kLengthBytes + text.size() + kShardAlignment - 1) / kShardAlignment * kShardAlignment;
  if (begin - kLengthBytes > kMaxHeaderBytes) {
    return Status(Code::kInvalid, std::to_string(tensors.size()) + " tensors make a header of " +
                                      std::to_string(begin) + " bytes; safetensors allows 100000000");
  }
  text.resize(begin - kLengthBytes, ' ');
  AppendLittleEndian<uint64_t>(layout.header, text.size());
  layout.header += text;
  for (uint64_t& offset : layout.offsets) offset += begin;
  layout.file_bytes = begin + end;
  return layout;
}

}  // namespace

Result<ShardLayout> LayOutShard(std::span<const ShardTensor> tensors) {
  Json info = Json::object();
  for (size_t i : FileOrder(tensors)) {
    info.get_ref<Json::object_t&>().emplace_back(
        tensors[i].fqn, Json{{kSavedOffsets, ToJson(tensors[i].box.offset, tensors[i].dtype)}});
  }
  CAIRN_ASSIGN_OR_RETURN(const std::string text, Dump(info));
  return LayOut(tensors, /*empty_allowed=*/false,
                {{kShardingInfo, text}, {"DCP_VERSION", "1.0"}, {"format", "pt"}});
}

Result<ShardLayout> LayOutWhole(std::span<const ShardTensor> tensors) {
  return LayOut(tensors, /*empty_allowed=*/true, {{"format", "pt"}});
}

Result<uint64_t> ShardHeaderBytes(std::string_view first_8_bytes, uint64_t file_bytes) {
  if (first_8_bytes.size() < kLengthBytes || file_bytes < kLengthBytes) {
    return Damage("the file has fewer bytes than the header's length: it was truncated");
  }
  const auto length = LittleEndianAt<uint64_t>(first_8_bytes, 0);
  if (length > kMaxHeaderBytes || length > file_bytes - kLengthBytes) {
    return Damage("its length at byte 0 is " + std::to_string(length) + " in a file of " +
                  std::to_string(file_bytes) + " bytes");
  }
  return kLengthBytes + length;
}

Result<ParsedShard> ParseShard(std::string_view header, uint64_t file_bytes) {
  CAIRN_ASSIGN_OR_RETURN(const uint64_t data_begin, ShardHeaderBytes(header, file_bytes));
  if (header.size() != data_begin)
    return Damage("has " + std::to_string(header.size()) + " bytes, not " + std::to_string(data_begin));
  // The reference reader wants the object to begin at once.
  if (data_begin == kLengthBytes || header[kLengthBytes] != '{') return Damage("no JSON object at byte 8");
  const Parsed json = Parsed::parse(header.substr(kLengthBytes), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Damage("the JSON at byte 8 is malformed");

  ParsedShard shard;
  const Parsed* metadata = nullptr;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadata) {
      metadata = &value;
      continue;
    }
    CAIRN_ASSIGN_OR_RETURN(ParsedShard::Entry entry, ParseEntry(name, value, data_begin));
    shard.entries.push_back(std::move(entry));
  }
  if (metadata != nullptr) CAIRN_RETURN_IF_ERROR(ApplyShardingInfo(*metadata, shard.entries));
  std::stable_sort(shard.entries.begin(), shard.entries.end(), [](const auto& a, const auto& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  });
  uint64_t end = data_begin;
  for (const ParsedShard::Entry& entry : shard.entries) {
    if (entry.offset != end) {
      return Damage(Quoted(entry.tensor.fqn) + " begins at byte " + std::to_string(entry.offset) +
                    ", the tensor before it ends at byte " + std::to_string(end));
    }
    end += entry.bytes;
  }
  if (end != file_bytes) {
    return Damage("the tensors end at byte " + std::to_string(end) + " of a file of " +
                  std::to_string(file_bytes) + " bytes");
  }
  return shard;
}

}  // namespace cairn
