#include "runtime/session/items.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "planner/flat_range.h"
#include "runtime/session/tables.h"

namespace cairn {
namespace {

constexpr int64_t kMaxRowBytes = 1 << 30;

Status Wrong(std::string_view name, const std::string& what) {
  return {Code::kInvalid, "item \"" + std::string(name) + "\": " + what};
}

// Dense strides of a box in bytes, the last dimension (C) or the first (Fortran) being contiguous; in the caller's order of dimensions.
Dims DenseStrides(const int64_t* extent, int ndim, bool fortran, int64_t element_bytes) {
  Dims strides = Dims::Filled(ndim, 0);
  int64_t step = element_bytes;
  for (int k = 0; k < ndim; ++k) {
    const int d = fortran ? k : ndim - 1 - k;
    strides[d] = step;
    step *= extent[d];
  }
  return strides;
}

// What a program gives that was built with a cairn.h in which the structure ended before `memory`.
template <typename T>
Result<T> Whole(std::string_view name, const T& given, const char* type) {
  constexpr size_t kAtFirst = offsetof(T, memory);
  if (given.struct_size < kAtFirst)
    return Wrong(name, std::string(type) + ".struct_size is not sizeof(" + type + ")");
  T whole{};
  std::memcpy(&whole, &given, given.struct_size < sizeof(T) ? kAtFirst : sizeof(T));
  return whole;
}

Result<LocalPiece> MakePiece(std::string_view name, const cairn_array& array, const cairn_piece& piece,
                             int64_t element_bytes) {
  LocalPiece out;
  bool strided = false;
  for (int d = 0; d < array.ndim; ++d) {
    if (piece.extent[d] < 0 || piece.offset[d] < 0 || piece.offset[d] > array.shape[d] - piece.extent[d]) {
      return Wrong(name, "a piece of extent " + std::to_string(piece.extent[d]) + " at offset " +
                             std::to_string(piece.offset[d]) + " in dimension " + std::to_string(d) +
                             " reaches outside the global shape (" + std::to_string(array.shape[d]) + ")");
    }
    out.box.offset.push_back(piece.offset[d]);
    out.box.extent.push_back(piece.extent[d]);
    strided |= piece.stride[d] != 0;
  }
  if (piece.data == nullptr && !out.box.empty())
    return Wrong(name, "a piece that is not empty has no address");
  const bool fortran = array.order == CAIRN_ORDER_FORTRAN;
  if (strided) {
    for (int d = 0; d < array.ndim; ++d) {
      int64_t bytes = 0;
      if (__builtin_mul_overflow(piece.stride[d], element_bytes, &bytes)) {
        return Wrong(name, "the stride " + std::to_string(piece.stride[d]) + " in dimension " +
                               std::to_string(d) + " is too long; strides count elements");
      }
      out.stride_bytes.push_back(bytes);
    }
  } else {
    out.stride_bytes = DenseStrides(piece.extent, array.ndim, fortran, element_bytes);
  }
  if (fortran) {
    out.box = {Reversed(out.box.offset), Reversed(out.box.extent)};
    out.stride_bytes = Reversed(out.stride_bytes);
  }
  out.data = static_cast<std::byte*>(piece.data);
  return out;
}

}  // namespace

Dims Reversed(const Dims& dims) {
  Dims out;
  for (int i = dims.size() - 1; i >= 0; --i) out.push_back(dims[i]);
  return out;
}

Status Items::CheckName(std::string_view name) const {
  if (name.empty()) return {Code::kInvalid, "an item's name is empty"};
  if (by_name_.contains(std::string(name))) return Wrong(name, "added twice; names are unique in a session");
  return OkStatus();
}

Result<RegisteredArray> Items::MakeArray(std::string_view name, int dtype, int order, int ndim,
                                         const int64_t* shape) const {
  CAIRN_RETURN_IF_ERROR(CheckName(name));
  if (dtype < 0 || dtype >= kDTypeCount) return Wrong(name, "unknown dtype " + std::to_string(dtype));
  if (ndim < 0 || ndim > kMaxRank) return Wrong(name, "ndim must be 0 … " + std::to_string(kMaxRank));
  if (order != CAIRN_ORDER_C && order != CAIRN_ORDER_FORTRAN) return Wrong(name, "unknown order");
  RegisteredArray item;
  item.spec.name = name;
  item.spec.dtype = static_cast<DType>(dtype);
  item.spec.fortran = order == CAIRN_ORDER_FORTRAN;
  for (int d = 0; d < ndim; ++d) item.spec.shape.push_back(shape[d]);
  CAIRN_RETURN_IF_ERROR(CheckArray(item.spec));  // so that no size below overflows
  if (item.spec.fortran) item.spec.shape = Reversed(item.spec.shape);
  return item;
}

Status Items::Place(RegisteredArray& item, int memory, int stable_until) {
  if (memory != CAIRN_MEMORY_HOST && memory != CAIRN_MEMORY_CUDA)
    return Wrong(item.spec.name, "unknown memory " + std::to_string(memory));
  if (stable_until != CAIRN_STABLE_STEP_RETURN && stable_until != CAIRN_STABLE_FENCE)
    return Wrong(item.spec.name, "unknown stable_until " + std::to_string(stable_until));
  if (memory == CAIRN_MEMORY_HOST) return OkStatus();
  CAIRN_ASSIGN_OR_RETURN(device_, Device::Cuda());
  for (const auto& [number, stream] : streams_) CAIRN_RETURN_IF_ERROR(device_->SetStream(number, stream));
  streams_.clear();
  for (const LocalPiece& piece : item.pieces) {
    if (!piece.box.empty())
      CAIRN_RETURN_IF_ERROR(device_->Check(piece.data).Annotate("item \"" + item.spec.name + "\""));
  }
  item.device = true;
  item.late = stable_until == CAIRN_STABLE_FENCE;
  return OkStatus();
}

Status Items::SetStream(int device, void* stream) {
  if (device_ != nullptr) return device_->SetStream(device, stream);
  streams_[device] = stream;
  return OkStatus();
}

void Items::Keep(RegisteredArray item) {
  by_name_.emplace(item.spec.name, static_cast<int>(order_.size()));
  order_.emplace_back(ArrayPosition{arrays_.size()});
  arrays_.push_back(std::move(item));
}

Status Items::AddArray(std::string_view name, const cairn_array& given) {
  CAIRN_ASSIGN_OR_RETURN(const cairn_array array, Whole(name, given, "cairn_array"));
  CAIRN_ASSIGN_OR_RETURN(RegisteredArray item,
                         MakeArray(name, array.dtype, array.order, array.ndim, array.shape));
  item.optional = array.optional != 0;
  if (array.piece_count < 0 || (array.piece_count > 0 && array.pieces == nullptr))
    return Wrong(name, "pieces are missing");
  for (int p = 0; p < array.piece_count; ++p) {
    CAIRN_ASSIGN_OR_RETURN(LocalPiece piece,
                           MakePiece(name, array, array.pieces[p], DTypeBytes(item.spec.dtype)));
    piece.registered = item.registered++;
    item.pieces.push_back(std::move(piece));
  }
  CAIRN_RETURN_IF_ERROR(Place(item, array.memory, array.stable_until));
  Keep(std::move(item));
  return OkStatus();
}

Status Items::AddFlat(std::string_view name, const cairn_flat& given) {
  CAIRN_ASSIGN_OR_RETURN(const cairn_flat flat, Whole(name, given, "cairn_flat"));
  CAIRN_ASSIGN_OR_RETURN(RegisteredArray item,
                         MakeArray(name, flat.dtype, flat.order, flat.ndim, flat.shape));
  item.optional = flat.optional != 0;
  if (flat.range_count < 0 || (flat.range_count > 0 && flat.ranges == nullptr))
    return Wrong(name, "ranges are missing");
  const int64_t elements = item.spec.shape.Product(), element_bytes = DTypeBytes(item.spec.dtype);
  for (int r = 0; r < flat.range_count; ++r) {
    const cairn_flat_range& range = flat.ranges[r];
    if (range.offset < 0 || range.count < 0) return Wrong(name, "a flat range begins or ends below 0");
    // What lies past the array's end is padding.
    const int64_t begin = std::min(range.offset, elements), count = std::min(range.count, elements - begin);
    if (range.data == nullptr && count > 0)
      return Wrong(name, "a flat range that is not empty has no address");
    int64_t offset_bytes = 0;
    for (const Box& box : CutFlatRange(item.spec.shape, begin, count)) {
      item.pieces.push_back({box, DenseStrides(box.extent.begin(), box.rank(), false, element_bytes),
                             static_cast<std::byte*>(range.data) + offset_bytes, item.registered,
                             offset_bytes});
      offset_bytes += box.elements() * element_bytes;
    }
    ++item.registered;
  }
  CAIRN_RETURN_IF_ERROR(Place(item, flat.memory, flat.stable_until));
  Keep(std::move(item));
  return OkStatus();
}

Status Items::AddTable(std::string_view name, const cairn_table& table) {
  if (table.struct_size < sizeof(cairn_table))
    return Wrong(name, "cairn_table.struct_size is not sizeof(cairn_table)");
  if (table.row_bytes < 1 || table.row_bytes > kMaxRowBytes)
    return Wrong(name, "a row has 1 byte to 1 GiB, not " + std::to_string(table.row_bytes));
  if (table.capacity < 0 || table.rows == nullptr)
    return Wrong(name, "a table has room for 0 rows or more, and says where their number is");
  if (table.data == nullptr && table.capacity > 0) return Wrong(name, "the table has no address");
  const std::string blob = TableRowsName(name);
  CAIRN_RETURN_IF_ERROR(CheckName(blob));
  const int64_t shape[] = {table.capacity, table.row_bytes};
  CAIRN_ASSIGN_OR_RETURN(RegisteredArray item, MakeArray(name, CAIRN_U8, CAIRN_ORDER_C, 2, shape));
  item.table = true;
  item.registered = 1;
  item.pieces.push_back(
      {Box::Whole(item.spec.shape), {table.row_bytes, 1}, static_cast<std::byte*>(table.data)});
  RegisteredTable& known = tables_.emplace_back();
  known.name = name;
  known.array = arrays_.size();
  known.row_bytes = table.row_bytes;
  known.capacity = table.capacity;
  known.rows = table.rows;
  known.grow = table.grow;
  known.owner = table.owner;
  known.user = table.user;
  known.mark = std::make_unique<std::string>(EncodeTableMark({}));
  blobs_.push_back({blob, reinterpret_cast<std::byte*>(known.mark->data()), known.mark->size(), nullptr,
                    CAIRN_BLOB_MERGE});
  by_name_.emplace(blob, static_cast<int>(order_.size()));
  Keep(std::move(item));
  return OkStatus();
}

void Items::PlaceTable(size_t table, int64_t first, int64_t rows) {
  const RegisteredTable& known = tables_[table];
  RegisteredArray& array = arrays_[known.array];
  array.spec.shape = {rows, known.row_bytes};
  array.pieces[0].box = {{first, 0}, {known.capacity, known.row_bytes}};
}

Status Items::MakeRoom(size_t table, int64_t rows) {
  RegisteredTable& known = tables_[table];
  if (rows <= known.capacity) return OkStatus();
  const std::string needs = "this rank gets " + std::to_string(rows) + " rows";
  if (known.grow == nullptr) {
    return {Code::kMismatch, "table \"" + known.name + "\": " + needs + " and has room for " +
                                 std::to_string(known.capacity) +
                                 "; give it more, or a way to grow (cairn_table.grow)"};
  }
  int64_t capacity = rows;
  void* const data = known.grow(&capacity, known.user);
  if (data == nullptr || capacity < rows)
    return {Code::kOutOfMemory,
            "table \"" + known.name + "\": " + needs + ", for which the program has no room"};
  known.capacity = capacity;
  arrays_[known.array].pieces[0].data = static_cast<std::byte*>(data);
  return OkStatus();
}

Status Items::MarkTables() const {
  for (const RegisteredTable& table : tables_) {
    if (*table.rows < 0 || *table.rows > table.capacity) {
      return Wrong(table.name, std::to_string(*table.rows) + " rows count, of " +
                                   std::to_string(table.capacity) + " that fit");
    }
    const RowRun run{arrays_[table.array].pieces[0].box.offset[0], *table.rows};
    EncodeTableMark(run).copy(table.mark->data(), table.mark->size());
  }
  return OkStatus();
}

size_t RegisteredArray::PieceAt(uint32_t ordinal) const {
  for (size_t i = 0;; ++i) {
    if (!pieces[i].box.empty() && ordinal-- == 0) return i;
  }
}

Status Items::AddBlob(std::string_view name, void* data, size_t capacity, size_t* size, int policy) {
  CAIRN_RETURN_IF_ERROR(CheckName(name));
  if (capacity > (policy == CAIRN_BLOB_MERGE ? kMaxMergedBlobBytes : kMaxBlobBytes))
    return Wrong(name, "a blob has at most 64 KiB, a merged one 1 MiB; use an array of CAIRN_U8 for more");
  if (capacity > kMaxBlobsBytes - blobs_bytes_)
    return Wrong(name, "the blobs of a rank have at most 32 MiB together; use arrays of CAIRN_U8 for more");
  if (data == nullptr && capacity > 0) return Wrong(name, "the blob has no address");
  if (policy < CAIRN_BLOB_REFUSE || policy > CAIRN_BLOB_MERGE) return Wrong(name, "unknown blob policy");
  by_name_.emplace(name, static_cast<int>(order_.size()));
  order_.emplace_back(BlobPosition{blobs_.size()});
  blobs_.push_back({std::string(name), static_cast<std::byte*>(data), capacity, size, policy});
  blobs_bytes_ += capacity;
  return OkStatus();
}

Status Items::Update(int item, int piece, void* data) {
  if (item < 0 || static_cast<size_t>(item) >= order_.size()) {
    return {Code::kInvalid, "there is no item " + std::to_string(item) +
                                "; items are numbered in the order in which they were added"};
  }
  const auto& position = order_[static_cast<size_t>(item)];
  if (const auto* blob = std::get_if<BlobPosition>(&position)) {
    if (piece != 0) return Wrong(blobs_[blob->index].name, "a blob has only piece 0");
    blobs_[blob->index].data = static_cast<std::byte*>(data);
    return OkStatus();
  }
  RegisteredArray& array = arrays_[std::get<ArrayPosition>(position).index];
  if (piece < 0 || static_cast<uint32_t>(piece) >= array.registered) {
    return Wrong(array.spec.name, "there is no piece " + std::to_string(piece));
  }
  for (LocalPiece& local : array.pieces) {
    if (local.registered == static_cast<uint32_t>(piece))
      local.data = data == nullptr ? nullptr : static_cast<std::byte*>(data) + local.offset_bytes;
  }
  return OkStatus();
}

Result<int> Items::Find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  if (it == by_name_.end()) return Wrong(name, "not registered in this session");
  return it->second;
}

}  // namespace cairn
