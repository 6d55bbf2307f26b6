// cairn.hpp: cairn.h for C++17. What each call means, which thread may make it and what it costs is said there; this header adds types, ownership
// and exceptions. It is all inline: the library exports C alone, so the program's compiler and standard library do not matter.
//
//     cairn::Session session;
//     session.Add<double>("u", {rows, columns}, {{{first, 0}, {count, columns}, u.data()}});
//     const cairn::Report report = session.Restore();
//     for (int64_t i = report.step; i < steps; ++i) {
//       Compute(i);
//       session.Step(i + 1);
//     }
//     session.Finalize();
//
// Errors. Every function throws cairn::Error; after one of Restore no rank may run on. A save that fails is reported on stderr and throws nothing.
#ifndef CAIRN_CAIRN_HPP_
#define CAIRN_CAIRN_HPP_

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/cairn.h"

namespace cairn {
inline namespace v1 {

class Error : public std::runtime_error {
 public:
  Error(int code, const char* message) : std::runtime_error(message), code_(code) {}
  int code() const noexcept { return code_; }  // CAIRN_E_*

 private:
  int code_;
};

inline void Check(int code) {
  if (code != CAIRN_OK) throw Error(code, cairn_last_error());
}

// The element type of T. Specialise it for a half or an eight-bit float of your own: `template <> inline constexpr int cairn::kDType<my::bf16> =
// CAIRN_BF16;`.
template <typename T>
inline constexpr int kDType = [] {
  if constexpr (std::is_same_v<T, bool>) return CAIRN_BOOL;
  if constexpr (std::is_same_v<T, float>) return CAIRN_F32;
  if constexpr (std::is_same_v<T, double>) return CAIRN_F64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return CAIRN_C64;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr int kSigned[] = {CAIRN_I8, CAIRN_I16, CAIRN_I32, CAIRN_I64};
    constexpr int kUnsigned[] = {CAIRN_U8, CAIRN_U16, CAIRN_U32, CAIRN_U64};
    constexpr int kWidth = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[kWidth] : kUnsigned[kWidth];
  }
}();

using Index = std::vector<int64_t>;  // one number for each dimension; at most CAIRN_MAX_DIMS

// A part of an array in this member's memory. Without strides it is dense in the array's order.
template <typename T>
struct Box {
  Box(Index box_offset, Index box_extent, T* first_element, Index box_stride = Index())
      : offset(std::move(box_offset)),
        extent(std::move(box_extent)),
        data(first_element),
        stride(std::move(box_stride)) {}

  Index offset, extent;
  T* data;       // the box's first element, not the halo's
  Index stride;  // elements
};

// A stretch of an array's flattening.
template <typename T>
struct Range {
  int64_t offset = 0, count = 0;
  T* data = nullptr;
};

struct ArrayOptions {
  int order = CAIRN_ORDER_C;
  bool optional = false;  // members that hold nothing of it may leave it out
  int memory = CAIRN_MEMORY_HOST;
  int stable_until = CAIRN_STABLE_STEP_RETURN;
};

struct Rename {
  std::string saved, registered;
};

struct LoadOptions {
  int match = CAIRN_MATCH_STRICT;
  std::vector<Rename> renames;
  std::vector<std::string> only;
};

// cairn_report, with the differences.
struct Difference {
  int kind = 0;  // CAIRN_ITEM_*
  std::string name, saved_name;
};
struct Report {
  bool restored = false, finished = false;
  int64_t step = 0, label = 0;
  int world_size_saved = 0, items_loaded = 0, items_reset = 0, match = 0;
  std::vector<Difference> differences;
};

// An item of a session, for Session::Update.
struct Item {
  int number = 0;
};

// Moves, does not copy. A session that is destroyed before Finalize has run (by an exception, say) saves nothing more, and leaves a run that can be
// resumed; as with a process that exits, what the library holds of it stays until the process ends.
class Session {
 public:
  explicit Session(const char* name = nullptr, int rank = -1, int world_size = 0) {
    const cairn_open_options options{sizeof options, name, rank, world_size};
    Check(cairn_open(&options, &session_));
  }
  Session(Session&& other) noexcept
      : session_(std::exchange(other.session_, nullptr)), items_(std::exchange(other.items_, 0)) {}
  Session& operator=(Session&& other) noexcept {
    std::swap(session_, other.session_);
    std::swap(items_, other.items_);
    return *this;
  }

  cairn_session* get() const noexcept { return session_; }
  bool active() const noexcept { return cairn_active(session_) == 1; }

  template <typename T>
  Item Add(const std::string& name, const Index& shape, const std::vector<Box<T>>& boxes,
           const ArrayOptions& options = {}) {
    std::vector<cairn_piece> pieces;
    for (const Box<T>& box : boxes) {
      cairn_piece& piece = pieces.emplace_back();
      CopyTo(box.offset, shape.size(), name, piece.offset);
      CopyTo(box.extent, shape.size(), name, piece.extent);
      if (!box.stride.empty()) CopyTo(box.stride, shape.size(), name, piece.stride);
      piece.data = box.data;
    }
    cairn_array array{};
    Describe<T>(name, shape, options, &array);
    array.piece_count = static_cast<int>(pieces.size());
    array.pieces = pieces.data();
    return Added(cairn_add_array(session_, name.c_str(), &array));
  }

  template <typename T>
  Item AddFlat(const std::string& name, const Index& shape, const std::vector<Range<T>>& ranges,
               const ArrayOptions& options = {}) {
    std::vector<cairn_flat_range> stretches;
    for (const Range<T>& range : ranges) stretches.push_back({range.offset, range.count, range.data});
    cairn_flat flat{};
    Describe<T>(name, shape, options, &flat);
    flat.range_count = static_cast<int>(stretches.size());
    flat.ranges = stretches.data();
    return Added(cairn_add_flat(session_, name.c_str(), &flat));
  }

  // A number that all members have alike.
  template <typename T>
  Item AddScalar(const std::string& name, T* value) {
    return Add<T>(name, {}, {{{}, {}, value}});
  }

  // Bytes of this member's own. T is what memcpy may copy.
  template <typename T>
  Item AddBlob(const std::string& name, T* value, int policy = CAIRN_BLOB_REFUSE) {
    static_assert(std::is_trivially_copyable_v<T>, "a blob is saved and restored as its bytes");
    return Added(cairn_add_blob(session_, name.c_str(), value, sizeof(T), policy));
  }

  // A file to which this member appends.
  void AddOutput(const std::string& path) { Check(cairn_add_output(session_, path.c_str())); }

  // After a swap of buffers: where the item's piece-th box, range or (0) blob is now.
  void Update(Item item, void* data, int piece = 0) {
    Check(cairn_update_item(session_, item.number, piece, data));
  }

  Report Restore(const LoadOptions& options = {}) {
    std::vector<cairn_rename> renames;
    for (const Rename& rename : options.renames)
      renames.push_back({rename.saved.c_str(), rename.registered.c_str()});
    std::vector<const char*> only;
    for (const std::string& pattern : options.only) only.push_back(pattern.c_str());
    cairn_load_options load{};
    load.struct_size = sizeof load;
    load.match = options.match;
    load.rename_count = static_cast<int>(renames.size());
    load.renames = renames.data();
    load.only_count = static_cast<int>(only.size());
    load.only = only.data();
    Check(cairn_set_load(session_, &load));
    cairn_report from{};
    from.struct_size = sizeof from;
    Check(cairn_restore(session_, &from));
    Report report{from.restored != 0, from.finished != 0, from.step,  from.label, from.world_size_saved,
                  from.items_loaded,  from.items_reset,   from.match, {}};
    for (int i = 0; i < from.difference_count; ++i) {
      cairn_difference difference{};
      difference.struct_size = sizeof difference;
      Check(cairn_restored_difference(session_, i, &difference));
      report.differences.push_back({difference.kind, difference.name, difference.saved_name});
    }
    return report;
  }

  void Step(int64_t label) { Check(cairn_step(session_, label)); }
  void Fence() { Check(cairn_fence(session_)); }
  void SetStream(int device, void* stream) { Check(cairn_set_stream(session_, device, stream)); }
  void Save(const char* tag = nullptr) { Check(cairn_save(session_, tag)); }
  void Wait(int timeout_ms = -1) { Check(cairn_wait(session_, timeout_ms)); }
  void Finalize() { Check(cairn_finalize(&session_)); }

  // While one lives the state does not change, and a save may be made at any moment.
  class Quiet {
   public:
    explicit Quiet(const Session& session) : session_(session.get()) { Check(cairn_quiet_begin(session_)); }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;
    ~Quiet() { cairn_quiet_end(session_); }

   private:
    cairn_session* session_;
  };

 private:
  static void CopyTo(const Index& from, size_t dims, const std::string& name, int64_t (&to)[CAIRN_MAX_DIMS]) {
    if (from.size() != dims || dims > CAIRN_MAX_DIMS)
      throw Error(CAIRN_E_INVALID, ("array '" + name + "' has " + std::to_string(dims) + " dimensions, and " +
                                    std::to_string(from.size()) + " numbers are given for them; at most " +
                                    std::to_string(CAIRN_MAX_DIMS) + " are possible")
                                       .c_str());
    std::copy(from.begin(), from.end(), to);
  }

  template <typename T, typename Array>
  static void Describe(const std::string& name, const Index& shape, const ArrayOptions& options,
                       Array* array) {
    array->struct_size = sizeof *array;
    array->dtype = kDType<T>;
    array->order = options.order;
    array->ndim = static_cast<int>(shape.size());
    CopyTo(shape, shape.size(), name, array->shape);
    array->optional = options.optional ? 1 : 0;
    array->memory = options.memory;
    array->stable_until = options.stable_until;
  }

  Item Added(int code) {
    Check(code);
    return {items_++};
  }

  cairn_session* session_ = nullptr;
  int items_ = 0;
};

}  // namespace v1
}  // namespace cairn

#endif  // CAIRN_CAIRN_HPP_
