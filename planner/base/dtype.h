// DType: the element types that safetensors names, in its own spelling ("F32", "BF16", "BOOL", …).
//
// An element is what has an address: a whole number of bytes. Of types that are smaller than a byte it is the fewest values that fill whole bytes
// (docs/design/formats.md, section 2). Shapes, offsets and extents count elements.
#ifndef CAIRN_PLANNER_BASE_DTYPE_H_
#define CAIRN_PLANNER_BASE_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace cairn {

// X(enumerator, safetensors name, bytes of one element, values in it). The enumerators' values are those of cairn.h and
// are stored in the index: append only.
#define CAIRN_DTYPES(X)               \
  X(kBool, "BOOL", 1, 1)              \
  X(kU8, "U8", 1, 1)                  \
  X(kI8, "I8", 1, 1)                  \
  X(kF8E5M2, "F8_E5M2", 1, 1)         \
  X(kF8E4M3, "F8_E4M3", 1, 1)         \
  X(kI16, "I16", 2, 1)                \
  X(kU16, "U16", 2, 1)                \
  X(kF16, "F16", 2, 1)                \
  X(kBF16, "BF16", 2, 1)              \
  X(kI32, "I32", 4, 1)                \
  X(kU32, "U32", 4, 1)                \
  X(kF32, "F32", 4, 1)                \
  X(kF64, "F64", 8, 1)                \
  X(kI64, "I64", 8, 1)                \
  X(kU64, "U64", 8, 1)                \
  X(kC64, "C64", 8, 1)                \
  X(kF8E8M0, "F8_E8M0", 1, 1)         \
  X(kF8E4M3Fnuz, "F8_E4M3FNUZ", 1, 1) \
  X(kF8E5M2Fnuz, "F8_E5M2FNUZ", 1, 1) \
  X(kF4, "F4", 1, 2)                  \
  X(kF6E2M3, "F6_E2M3", 3, 4)         \
  X(kF6E3M2, "F6_E3M2", 3, 4)

enum class DType : uint8_t {
#define X(enumerator, name, bytes, values) enumerator,
  CAIRN_DTYPES(X)
#undef X
};

inline int DTypeBytes(DType t) {
  static constexpr uint8_t kBytes[] = {
#define X(enumerator, name, bytes, values) bytes,
      CAIRN_DTYPES(X)
#undef X
  };
  return kBytes[static_cast<size_t>(t)];
}

// How many values one element is. Only safetensors counts them: its shapes have so many times the elements, along the last dimension.
inline int DTypeValues(DType t) {
  static constexpr uint8_t kValues[] = {
#define X(enumerator, name, bytes, values) values,
      CAIRN_DTYPES(X)
#undef X
  };
  return kValues[static_cast<size_t>(t)];
}

// The multiple at which an element lies in a file: 8, 4, 2 or 1 bytes.
inline int DTypeAlignment(DType t) { return DTypeValues(t) == 1 ? DTypeBytes(t) : 1; }

inline std::string_view DTypeName(DType t) {
  static constexpr std::string_view kNames[] = {
#define X(enumerator, name, bytes, values) name,
      CAIRN_DTYPES(X)
#undef X
  };
  return kNames[static_cast<size_t>(t)];
}

inline constexpr int kDTypeCount = 0
#define X(enumerator, name, bytes, values) +1
    CAIRN_DTYPES(X)
#undef X
    ;

inline std::optional<DType> ParseDType(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (DTypeName(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace cairn

#endif  // CAIRN_PLANNER_BASE_DTYPE_H_
