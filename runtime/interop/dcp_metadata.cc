#include "runtime/interop/dcp_metadata.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "runtime/interop/pickle.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kMetadataModule = "torch.distributed.checkpoint.metadata";
constexpr std::string_view kFilesModule = "torch.distributed.checkpoint.filesystem";

// What torch calls an element type, and the class of a typed storage; "" = its tensors have an untyped one.
struct TorchType {
  DType dtype;
  std::string_view global;   // "torch float32"
  std::string_view storage;  // "torch FloatStorage"
};
constexpr TorchType kTypes[] = {
    {DType::kBool, "torch bool", "torch BoolStorage"},
    {DType::kU8, "torch uint8", "torch ByteStorage"},
    {DType::kI8, "torch int8", "torch CharStorage"},
    {DType::kF8E5M2, "torch float8_e5m2", ""},
    {DType::kF8E4M3, "torch float8_e4m3fn", ""},
    {DType::kI16, "torch int16", "torch ShortStorage"},
    {DType::kU16, "torch uint16", ""},
    {DType::kF16, "torch float16", "torch HalfStorage"},
    {DType::kBF16, "torch bfloat16", "torch BFloat16Storage"},
    {DType::kI32, "torch int32", "torch IntStorage"},
    {DType::kU32, "torch uint32", ""},
    {DType::kF32, "torch float32", "torch FloatStorage"},
    {DType::kF64, "torch float64", "torch DoubleStorage"},
    {DType::kI64, "torch int64", "torch LongStorage"},
    {DType::kU64, "torch uint64", ""},
    {DType::kC64, "torch complex64", "torch ComplexFloatStorage"},
    {DType::kF8E8M0, "torch float8_e8m0fnu", ""},
    {DType::kF8E4M3Fnuz, "torch float8_e4m3fnuz", ""},
    {DType::kF8E5M2Fnuz, "torch float8_e5m2fnuz", ""},
    {DType::kF4, "torch float4_e2m1fn_x2", ""},
};

constexpr std::string_view kTensorV2 = "torch._utils _rebuild_tensor_v2",
                           kTensorV3 = "torch._utils _rebuild_tensor_v3";
constexpr std::string_view kUntypedStorage = "torch.storage UntypedStorage";

const std::vector<std::string_view>& AdmittedInMetadata() {
  static const std::vector<std::string_view> admitted = [] {
    std::vector<std::string_view> names = {
        "torch.distributed.checkpoint.metadata Metadata",
        "torch.distributed.checkpoint.metadata TensorStorageMetadata",
        "torch.distributed.checkpoint.metadata BytesStorageMetadata",
        "torch.distributed.checkpoint.metadata ChunkStorageMetadata",
        "torch.distributed.checkpoint.metadata TensorProperties",
        "torch.distributed.checkpoint.metadata MetadataIndex",
        "torch.distributed.checkpoint.metadata StorageMeta",
        "torch.distributed.checkpoint.metadata _MEM_FORMAT_ENCODING",
        "torch.distributed.checkpoint.filesystem _StorageInfo",
        "torch.distributed._shard.sharded_tensor.metadata TensorProperties",  // until PyTorch 2.2
        "torch.distributed._shard.sharded_tensor.metadata MEM_FORMAT_ENCODING",
        "builtins getattr",  // of these two: how Python 3.11.0 to 3.11.3 write a member of an enumeration
        "torch.serialization _get_layout",
        "torch Size",
        "collections OrderedDict",
        "pathlib PosixPath",
        "pathlib._local PosixPath",  // Python 3.13
    };
    for (const TorchType& type : kTypes) names.push_back(type.global);
    return names;
  }();
  return admitted;
}

const std::vector<std::string_view>& AdmittedInTensors() {
  static const std::vector<std::string_view> admitted = [] {
    std::vector<std::string_view> names = {kTensorV2, kTensorV3, kUntypedStorage, "collections OrderedDict",
                                           "torch Size"};
    for (const TorchType& type : kTypes) {
      names.push_back(type.global);
      if (!type.storage.empty()) names.push_back(type.storage);
    }
    return names;
  }();
  return admitted;
}

Status Damage(const std::string& what) { return {Code::kDamage, what}; }

std::optional<DType> TypeOf(const PickleValue& value, std::string_view TorchType::*name) {
  if (value.kind != Kind::kGlobal) return std::nullopt;
  for (const TorchType& type : kTypes) {
    if (type.*name == value.text) return type.dtype;
  }
  return std::nullopt;
}

Result<Dims> DimsOf(const Pickle& pickle, const PickleValue* value, const std::string& what) {
  if (value == nullptr) return Damage(what + " is missing");
  const auto integers = pickle.Integers(*value);
  if (!integers.ok()) return Damage(what + " is no list of integers");
  if (integers->size() > kMaxRank)
    return Status(Code::kMismatch,
                  what + " has " + std::to_string(integers->size()) + " dimensions; Cairn has 8 at most");
  Dims dims;
  for (const int64_t n : *integers) {
    if (n < 0) return Damage(what + " is negative");
    dims.push_back(n);
  }
  return dims;
}

class MetadataDecoder {
 public:
  explicit MetadataDecoder(Pickle pickle) : pickle_(std::move(pickle)) {}

  Result<DcpMetadata> Decode() {
    const PickleValue& root = pickle_.root();
    if (!IsOf(root, "Metadata")) return Damage("it is no metadata of torch.distributed.checkpoint");
    CAIRN_RETURN_IF_ERROR(ReadStorage(pickle_.Member(root, "storage_data")));
    const PickleValue* items = pickle_.Member(root, "state_dict_metadata");
    if (items == nullptr || items->kind != Kind::kDict) return Damage("state_dict_metadata is missing");
    DcpMetadata out;
    for (size_t i = 0; i + 1 < items->items.size(); i += 2) {
      const PickleValue &key = pickle_[items->items[i]], &value = pickle_[items->items[i + 1]];
      if (key.kind != Kind::kString) return Damage("a name in state_dict_metadata is no string");
      const std::string name(key.text);
      if (IsOf(value, "BytesStorageMetadata")) {
        out.objects.push_back({.name = name});
        continue;
      }
      if (!IsOf(value, "TensorStorageMetadata"))
        return Damage("\"" + name + "\" is neither a tensor nor bytes");
      Result<DcpTensor> tensor = Tensor(name, value);
      if (!tensor.ok()) return tensor.status().Annotate("\"" + name + "\"");
      out.tensors.push_back(*std::move(tensor));
    }
    return out;
  }

 private:
  using Key = std::pair<std::string_view, Dims>;

  bool IsOf(const PickleValue& value, std::string_view name) const {
    return pickle_.IsObject(value, std::string(kMetadataModule) + " " + std::string(name));
  }

  Status ReadStorage(const PickleValue* storage) {
    if (storage == nullptr || storage->kind != Kind::kDict) return Damage("storage_data is missing");
    for (size_t i = 0; i + 1 < storage->items.size(); i += 2) {
      const PickleValue &index = pickle_[storage->items[i]], &info = pickle_[storage->items[i + 1]];
      const PickleValue* name = pickle_.Member(index, "fqn");
      const PickleValue* offset = pickle_.Member(index, "offset");
      if (name == nullptr || name->kind != Kind::kString)
        return Damage("an entry of storage_data has no name");
      if (offset == nullptr || offset->kind == Kind::kNone) continue;  // bytes
      CAIRN_ASSIGN_OR_RETURN(Dims dims,
                             DimsOf(pickle_, offset, "an offset of \"" + std::string(name->text) + "\""));
      chunks_.emplace(Key{name->text, dims}, &info);
    }
    return OkStatus();
  }

  Result<DcpTensor> Tensor(const std::string& name, const PickleValue& value) const {
    DcpTensor tensor;
    tensor.name = name;
    // properties: an object whose state is the tuple (dtype, layout, …)
    const PickleValue* properties = pickle_.Member(value, "properties");
    if (properties == nullptr || properties->kind != Kind::kObject || properties->items.size() != 3)
      return Damage("its properties are missing");
    const PickleValue& state = pickle_[properties->items[2]];
    const auto dtype = state.kind == Kind::kTuple && !state.items.empty()
                           ? TypeOf(pickle_[state.items[0]], &TorchType::global)
                           : std::nullopt;
    if (!dtype) return Damage("its element type is missing");
    tensor.dtype = *dtype;
    CAIRN_ASSIGN_OR_RETURN(tensor.shape, DimsOf(pickle_, pickle_.Member(value, "size"), "its size"));
    const PickleValue* chunks = pickle_.Member(value, "chunks");
    if (chunks == nullptr || chunks->kind != Kind::kList) return Damage("its list of chunks is missing");
    for (const uint32_t item : chunks->items) {
      CAIRN_ASSIGN_OR_RETURN(DcpChunk chunk, Chunk(name, pickle_[item]));
      tensor.chunks.push_back(std::move(chunk));
    }
    return tensor;
  }

  Result<DcpChunk> Chunk(const std::string& name, const PickleValue& value) const {
    DcpChunk chunk;
    CAIRN_ASSIGN_OR_RETURN(chunk.box.offset,
                           DimsOf(pickle_, pickle_.Member(value, "offsets"), "a chunk's offset"));
    CAIRN_ASSIGN_OR_RETURN(chunk.box.extent,
                           DimsOf(pickle_, pickle_.Member(value, "sizes"), "a chunk's size"));
    const std::string where = "its chunk at " + chunk.box.offset.ToString();
    const auto found = chunks_.find({name, chunk.box.offset});
    if (found == chunks_.end()) return Damage(where + " is nowhere stored");
    const PickleValue& info = *found->second;
    const PickleValue* file = pickle_.Member(info, "relative_path");
    const PickleValue* offset = pickle_.Member(info, "offset");
    const PickleValue* length = pickle_.Member(info, "length");
    if (file == nullptr || file->kind != Kind::kString || offset == nullptr || offset->kind != Kind::kInt ||
        length == nullptr || length->kind != Kind::kInt || offset->integer < 0 || length->integer < 0) {
      return Damage(where + " has no place");
    }
    const PickleValue* transforms = pickle_.Member(info, "transform_descriptors");
    if (transforms != nullptr && transforms->kind != Kind::kNone && !transforms->items.empty())
      return Status(
          Code::kMismatch,
          where + " was transformed (compressed, say) when it was written; only plain ones are read");
    chunk.file = file->text;
    if (chunk.file.empty() || chunk.file.find('/') != std::string::npos ||
        chunk.file.find('\0') != std::string::npos)
      return Damage(where + " lies outside the folder: \"" + chunk.file + "\"");
    chunk.offset = static_cast<uint64_t>(offset->integer);
    chunk.bytes = static_cast<uint64_t>(length->integer);
    return chunk;
  }

  const Pickle pickle_;
  std::map<Key, const PickleValue*> chunks_;  // by name and offset; where they lie
};

const TorchType& TypeOf(DType dtype) {
  for (const TorchType& type : kTypes) {
    if (type.dtype == dtype) return type;
  }
  return kTypes[0];  // not reached: TorchHas
}

void WriteGlobal(PickleWriter& out, std::string_view global) {
  const size_t space = global.find(' ');
  out.Global(global.substr(0, space), global.substr(space + 1));
}

void WriteSize(PickleWriter& out, const Dims& dims) {
  out.Global("torch", "Size");
  out.Mark();
  out.Integers({dims.begin(), dims.end()});
  out.Tuple();
  out.Reduce();
}

// Begins an object whose state is a dict: its members come next, then EndObject.
void BeginObject(PickleWriter& out, std::string_view module, std::string_view name) {
  out.Global(module, name);
  out.EmptyTuple();
  out.New();
  out.EmptyDict();
  out.Mark();
}
void EndObject(PickleWriter& out) {
  out.SetItems();
  out.Build();
}

void WriteTensor(PickleWriter& out, const DcpTensor& tensor) {
  BeginObject(out, kMetadataModule, "TensorStorageMetadata");
  out.String("properties");
  out.Global(kMetadataModule, "TensorProperties");
  out.EmptyTuple();
  out.New();
  out.Mark();  // dtype, layout, requires_grad, memory format, pin_memory
  WriteGlobal(out, TypeOf(tensor.dtype).global);
  out.Global("torch.serialization", "_get_layout");
  out.Mark();
  out.String("torch.strided");
  out.Tuple();
  out.Reduce();
  out.Bool(false);
  out.Global(kMetadataModule, "_MEM_FORMAT_ENCODING");
  out.Mark();
  out.Int(0);  // contiguous
  out.Tuple();
  out.Reduce();
  out.Bool(false);
  out.Tuple();
  out.Build();
  out.String("size");
  WriteSize(out, tensor.shape);
  out.String("chunks");
  out.EmptyList();
  out.Mark();
  for (const DcpChunk& chunk : tensor.chunks) {
    BeginObject(out, kMetadataModule, "ChunkStorageMetadata");
    out.String("offsets");
    WriteSize(out, chunk.box.offset);
    out.String("sizes");
    WriteSize(out, chunk.box.extent);
    EndObject(out);
  }
  out.Appends();
  EndObject(out);
}

// An entry of storage_data; objects have no offset in an array.
void WritePlace(PickleWriter& out, const std::string& name, const Dims* of_chunk, const std::string& file,
                uint64_t offset, uint64_t bytes) {
  BeginObject(out, kMetadataModule, "MetadataIndex");
  out.String("fqn");
  out.String(name);
  out.String("offset");
  if (of_chunk != nullptr) {
    WriteSize(out, *of_chunk);
  } else {
    out.None();
  }
  out.String("index");
  out.None();
  EndObject(out);
  BeginObject(out, kFilesModule, "_StorageInfo");
  out.String("relative_path");
  out.String(file);
  out.String("offset");
  out.Int(static_cast<int64_t>(offset));
  out.String("length");
  out.Int(static_cast<int64_t>(bytes));
  EndObject(out);
}

}  // namespace

bool TorchHas(DType dtype) {
  return std::any_of(std::begin(kTypes), std::end(kTypes),
                     [&](const TorchType& type) { return type.dtype == dtype; });
}

Result<DcpMetadata> DecodeDcpMetadata(std::string bytes) {
  CAIRN_ASSIGN_OR_RETURN(Pickle pickle, Pickle::Parse(std::move(bytes), AdmittedInMetadata()));
  return MetadataDecoder(std::move(pickle)).Decode();
}

std::string EncodeDcpMetadata(const DcpMetadata& metadata) {
  PickleWriter out;
  BeginObject(out, kMetadataModule, "Metadata");
  out.String("state_dict_metadata");
  out.EmptyDict();
  out.Mark();
  for (const DcpTensor& tensor : metadata.tensors) {
    out.String(tensor.name);
    WriteTensor(out, tensor);
  }
  for (const DcpObject& object : metadata.objects) {
    out.String(object.name);
    BeginObject(out, kMetadataModule, "BytesStorageMetadata");
    EndObject(out);
  }
  out.SetItems();
  out.String("planner_data");  // name → path in the state dict: all at its top
  out.EmptyDict();
  out.Mark();
  for (const DcpTensor& tensor : metadata.tensors) {
    out.String(tensor.name);
    out.Mark();
    out.String(tensor.name);
    out.Tuple();
  }
  for (const DcpObject& object : metadata.objects) {
    out.String(object.name);
    out.Mark();
    out.String(object.name);
    out.Tuple();
  }
  out.SetItems();
  out.String("storage_data");
  out.EmptyDict();
  out.Mark();
  for (const DcpTensor& tensor : metadata.tensors) {
    for (const DcpChunk& chunk : tensor.chunks) {
      WritePlace(out, tensor.name, &chunk.box.offset, chunk.file, chunk.offset, chunk.bytes);
    }
  }
  for (const DcpObject& object : metadata.objects)
    WritePlace(out, object.name, nullptr, object.file, object.offset, object.bytes);
  out.SetItems();
  out.String("storage_meta");
  out.None();
  EndObject(out);
  return std::move(out).Finish();
}

Result<ArchivedTensor> DecodeArchivedTensor(std::string data_pkl) {
  CAIRN_ASSIGN_OR_RETURN(const Pickle pickle, Pickle::Parse(std::move(data_pkl), AdmittedInTensors()));
  const PickleValue& call = pickle.root();
  const bool v3 = pickle.IsObject(call, kTensorV3);
  if (!v3 && !pickle.IsObject(call, kTensorV2)) return Damage("it is no tensor");
  // (storage, first element, size, stride, requires_grad, hooks) and, in v3, the element type
  const std::vector<uint32_t>& arguments = pickle[call.items[1]].items;
  if (arguments.size() < (v3 ? 7U : 6U)) return Damage("its description is malformed");
  const PickleValue& reference = pickle[arguments[0]];
  if (reference.kind != Kind::kPersistent) return Damage("its storage is missing");
  // ("storage", class, key, device, elements)
  const PickleValue& storage = pickle[reference.items[0]];
  if (storage.kind != Kind::kTuple || storage.items.size() < 3 ||
      pickle[storage.items[2]].kind != Kind::kString)
    return Damage("its storage is malformed");
  ArchivedTensor tensor;
  tensor.storage = pickle[storage.items[2]].text;
  const auto dtype = v3 ? TypeOf(pickle[arguments[6]], &TorchType::global)
                        : TypeOf(pickle[storage.items[1]], &TorchType::storage);
  if (!dtype) return Damage("its element type is missing");
  tensor.dtype = *dtype;
  const PickleValue& first = pickle[arguments[1]];
  if (first.kind != Kind::kInt || first.integer < 0) return Damage("its first element is malformed");
  tensor.first = first.integer;
  CAIRN_ASSIGN_OR_RETURN(tensor.shape, DimsOf(pickle, &pickle[arguments[2]], "its size"));
  CAIRN_ASSIGN_OR_RETURN(tensor.stride, DimsOf(pickle, &pickle[arguments[3]], "its stride"));
  if (tensor.stride.size() != tensor.shape.size()) return Damage("its stride does not fit its size");
  return tensor;
}

std::string EncodeArchivedTensor(DType dtype, const Dims& shape) {
  const TorchType& type = TypeOf(dtype);
  const bool typed = !type.storage.empty();
  const Dims stride = DenseStrides(shape, 1);
  PickleWriter out;
  WriteGlobal(out, typed ? kTensorV2 : kTensorV3);
  out.Mark();
  out.Mark();
  out.String("storage");
  WriteGlobal(out, typed ? type.storage : kUntypedStorage);
  out.String("0");
  out.String("cpu");
  out.Int(shape.Product() * (typed ? 1 : DTypeBytes(dtype)));  // an untyped storage counts bytes
  out.Tuple();
  out.Persistent();
  out.Int(0);
  out.Integers({shape.begin(), shape.end()});
  out.Integers({stride.begin(), stride.end()});
  out.Bool(false);
  out.Global("collections", "OrderedDict");
  out.EmptyTuple();
  out.Reduce();
  if (!typed) WriteGlobal(out, type.global);
  out.Tuple();
  out.Reduce();
  return std::move(out).Finish();
}

std::string EncodeArchivedBytes(const std::vector<std::optional<std::string>>& list) {
  PickleWriter out;
  out.EmptyList();
  out.Mark();
  for (const std::optional<std::string>& bytes : list) {
    if (bytes) {
      out.Bytes(*bytes);
    } else {
      out.None();
    }
  }
  out.Appends();
  return std::move(out).Finish();
}

}  // namespace cairn
