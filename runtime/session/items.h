// Items: the state that one member registered, as the C ABI took it: arrays with their pieces, and blobs.
//
// Built by the application's thread before the restore; afterwards only the pointers change (Update), again on the application's thread.
// Arrays are kept in C order: a Fortran array enters with its dimensions reversed.
#ifndef CAIRN_RUNTIME_SESSION_ITEMS_H_
#define CAIRN_RUNTIME_SESSION_ITEMS_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "planner/layout.h"
#include "runtime/include/cairn/cairn.h"
#include "runtime/session/outputs.h"
#include "runtime/staging/device.h"

namespace cairn {

inline constexpr size_t kMaxBlobBytes = 64 << 10;
inline constexpr size_t kMaxMergedBlobBytes = 1 << 20;  // of which mostly one member has much
inline constexpr size_t kMaxBlobsBytes = 32 << 20;  // of one member, all together: they travel in one message
inline constexpr size_t kMaxMergedBytes = 256 << 20;  // of all members together: each gets all of them

// Between an array's dimensions as the program counts them and as they are kept, where it is a Fortran array.
Dims Reversed(const Dims& dims);

// A box of an array in this member's memory. A flat range is several of them.
struct LocalPiece {
  Box box;
  Dims stride_bytes;
  std::byte* data = nullptr;
  uint32_t registered = 0;   // which of the pieces or ranges that the program gave
  int64_t offset_bytes = 0;  // of `data` from the address that the program gave
};

struct RegisteredArray {
  ArraySpec spec;
  bool optional = false;  // other members may leave it out
  bool device = false;    // its pieces lie in device memory: see Items::device
  bool late = false;      // of the device's: it may be copied until the next fence
  bool table = false;     // what the members have of it is not yet known to each other: see RegisteredTable
  std::vector<LocalPiece> pieces;
  uint32_t registered = 0;  // how many the program gave

  // Position in `pieces` of a layout's Piece::ordinal, which counts those that are not empty; one that is there.
  size_t PieceAt(uint32_t ordinal) const;
};

struct RegisteredBlob {
  std::string name;
  std::byte* data = nullptr;
  size_t capacity = 0;
  size_t* size = nullptr;  // how many of them count; nullptr: all
  int policy = CAIRN_BLOB_REFUSE;

  size_t bytes() const { return size == nullptr ? capacity : std::min(*size, capacity); }
};

// Besides, a table is an array and a blob (tables.h). Until PlaceTable the array is this member's rows alone.
struct RegisteredTable {
  std::string name;
  size_t array = 0;  // position in Items::arrays
  int64_t row_bytes = 0, capacity = 0;
  int64_t* rows = nullptr;
  void* (*grow)(int64_t* capacity, void* user) = nullptr;
  int (*owner)(const void* row, int world_size, void* user) = nullptr;
  void* user = nullptr;
  std::unique_ptr<std::string> mark;  // the blob's bytes
};

class Items {
 public:
  // kInvalid with the item's name and what is wrong with it.
  Status AddArray(std::string_view name, const cairn_array& array);
  Status AddFlat(std::string_view name, const cairn_flat& flat);
  Status AddTable(std::string_view name, const cairn_table& table);
  Status AddBlob(std::string_view name, void* data, size_t capacity, size_t* size, int policy);
  Status AddOutput(const std::string& path) { return outputs_.Add(path); }  // no item: has no number

  // `item` counts the Add calls from 0.
  Status Update(int item, int piece, void* data);
  Result<int> Find(std::string_view name) const;

  // What all members have together is known: `rows` of them fit, of which this member's begin at `first`.
  void PlaceTable(size_t table, int64_t first, int64_t rows);
  // Has room for more rows come, as its owner gives it; kMismatch or kOutOfMemory when it does not.
  Status MakeRoom(size_t table, int64_t rows);
  // Before a snapshot: brings the blobs of the tables up to date. kInvalid when more rows count than fit.
  Status MarkTables() const;

  // What reaches the device memory; nullptr while nothing of it is registered.
  const Device* device() const { return device_; }
  // May come before what it is for; an error of it then comes with the first array in device memory.
  Status SetStream(int device, void* stream);

  const std::vector<RegisteredTable>& tables() const { return tables_; }
  const std::vector<RegisteredArray>& arrays() const { return arrays_; }
  const std::vector<RegisteredBlob>& blobs() const { return blobs_; }
  const Outputs& outputs() const { return outputs_; }

 private:
  Status CheckName(std::string_view name) const;
  Result<RegisteredArray> MakeArray(std::string_view name, int dtype, int order, int ndim,
                                    const int64_t* shape) const;
  // Where the pieces lie and how long they stay as they are; finds out whether their memory can be reached.
  Status Place(RegisteredArray& item, int memory, int stable_until);
  void Keep(RegisteredArray item);

  struct ArrayPosition {
    size_t index;
  };
  struct BlobPosition {
    size_t index;
  };
  std::vector<RegisteredArray> arrays_;
  std::vector<RegisteredBlob> blobs_;
  size_t blobs_bytes_ = 0;  // their capacities
  std::vector<RegisteredTable> tables_;
  Outputs outputs_;
  std::vector<std::variant<ArrayPosition, BlobPosition>> order_;
  std::unordered_map<std::string, int> by_name_;
  const Device* device_ = nullptr;
  std::map<int, void*> streams_;  // by device; named before device_ was there
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_ITEMS_H_
