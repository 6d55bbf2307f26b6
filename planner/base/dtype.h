// DType: the element types that safetensors names, in its own spelling ("F32", "BF16", "BOOL", …).
#ifndef CAIRN_PLANNER_BASE_DTYPE_H_
#define CAIRN_PLANNER_BASE_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace cairn {

// X(enumerator, safetensors name, bytes of one element). The values are those of CAIRN_DTYPE_* in cairn.h and
// are stored in the index: append only.
#define CAIRN_DTYPES(X)    \
  X(kBool, "BOOL", 1)      \
  X(kU8, "U8", 1)          \
  X(kI8, "I8", 1)          \
  X(kF8E5M2, "F8_E5M2", 1) \
  X(kF8E4M3, "F8_E4M3", 1) \
  X(kI16, "I16", 2)        \
  X(kU16, "U16", 2)        \
  X(kF16, "F16", 2)        \
  X(kBF16, "BF16", 2)      \
  X(kI32, "I32", 4)        \
  X(kU32, "U32", 4)        \
  X(kF32, "F32", 4)        \
  X(kF64, "F64", 8)        \
  X(kI64, "I64", 8)        \
  X(kU64, "U64", 8)        \
  X(kC64, "C64", 8)

enum class DType : uint8_t {
#define X(enumerator, name, bytes) enumerator,
  CAIRN_DTYPES(X)
#undef X
};

inline int DTypeBytes(DType t) {
  static constexpr uint8_t kBytes[] = {
#define X(enumerator, name, bytes) bytes,
      CAIRN_DTYPES(X)
#undef X
  };
  return kBytes[static_cast<size_t>(t)];
}

inline std::string_view DTypeName(DType t) {
  static constexpr std::string_view kNames[] = {
#define X(enumerator, name, bytes) name,
      CAIRN_DTYPES(X)
#undef X
  };
  return kNames[static_cast<size_t>(t)];
}

inline constexpr int kDTypeCount = 0
#define X(enumerator, name, bytes) +1
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
