#include "runtime/interop/diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace cairn {
namespace {

// What the greatest exponents of a float mean.
enum class Special {
  kIeee,    // infinities and NaN
  kFn,      // no infinities; NaN is the pattern of all ones
  kFnuz,    // no infinities; NaN is what would be -0, and the bias is greater by one
  kFinite,  // numbers like all others
};

// A float of 16 bits or fewer, with `exponent` and `mantissa` bits.
template <int exponent, int mantissa, Special special>
double SmallFloat(uint32_t bits) {
  constexpr int kBias = (1 << (exponent - 1)) - (special == Special::kFnuz ? 0 : 1);
  constexpr uint32_t kMantissa = (1U << mantissa) - 1, kExponent = (1U << exponent) - 1;
  const double sign = (bits >> (exponent + mantissa) & 1) != 0 ? -1.0 : 1.0;
  const uint32_t e = bits >> mantissa & kExponent, m = bits & kMantissa;
  if (special == Special::kIeee && e == kExponent) return m != 0 ? std::nan("") : sign * HUGE_VAL;
  if (special == Special::kFn && e == kExponent && m == kMantissa) return std::nan("");
  if (special == Special::kFnuz && sign < 0 && e == 0 && m == 0) return std::nan("");
  if (e == 0) return sign * std::ldexp(m, 1 - kBias - mantissa);
  return sign * std::ldexp(m + kMantissa + 1, static_cast<int>(e) - kBias - mantissa);
}

struct F16 {
  uint16_t bits;
  explicit operator long double() const { return SmallFloat<5, 10, Special::kIeee>(bits); }
};
struct BF16 {
  uint16_t bits;
  explicit operator long double() const { return SmallFloat<8, 7, Special::kIeee>(bits); }
};
struct F8E4M3 {
  uint8_t bits;
  explicit operator long double() const { return SmallFloat<4, 3, Special::kFn>(bits); }
};
struct F8E5M2 {
  uint8_t bits;
  explicit operator long double() const { return SmallFloat<5, 2, Special::kIeee>(bits); }
};
struct F8E4M3Fnuz {
  uint8_t bits;
  explicit operator long double() const { return SmallFloat<4, 3, Special::kFnuz>(bits); }
};
struct F8E5M2Fnuz {
  uint8_t bits;
  explicit operator long double() const { return SmallFloat<5, 2, Special::kFnuz>(bits); }
};
struct F8E8M0 {  // an exponent alone
  uint8_t bits;
  explicit operator long double() const { return bits == 0xff ? std::nan("") : std::ldexp(1.0, bits - 127); }
};
struct F4E2M1 {
  static constexpr int kBits = 4;
  uint32_t bits;
  explicit operator long double() const { return SmallFloat<2, 1, Special::kFinite>(bits); }
};
struct F6E2M3 {
  static constexpr int kBits = 6;
  uint32_t bits;
  explicit operator long double() const { return SmallFloat<2, 3, Special::kFinite>(bits); }
};
struct F6E3M2 {
  static constexpr int kBits = 6;
  uint32_t bits;
  explicit operator long double() const { return SmallFloat<3, 2, Special::kFinite>(bits); }
};

void Add(long double x, long double y, Difference* difference) {
  ++difference->differing;
  if (!std::isfinite(x) || !std::isfinite(y)) {
    ++difference->not_finite;
    return;
  }
  const long double abs = std::fabs(x - y), scale = std::max(std::fabs(x), std::fabs(y));
  difference->max_abs = std::max(difference->max_abs, static_cast<double>(abs));
  if (scale > 0) difference->max_rel = std::max(difference->max_rel, static_cast<double>(abs / scale));
}

// long double holds every 64-bit integer exactly.
template <typename T>
void CompareAs(std::span<const std::byte> a, std::span<const std::byte> b, Difference* difference) {
  for (size_t at = 0; at + sizeof(T) <= a.size(); at += sizeof(T)) {
    if (std::memcmp(&a[at], &b[at], sizeof(T)) == 0) continue;
    T left, right;
    std::memcpy(&left, &a[at], sizeof left);
    std::memcpy(&right, &b[at], sizeof right);
    Add(static_cast<long double>(left), static_cast<long double>(right), difference);
  }
}

// Values smaller than a byte: the first one lies in the lowest bits of the first byte.
template <typename T>
void ComparePacked(std::span<const std::byte> a, std::span<const std::byte> b, Difference* difference) {
  uint32_t left = 0, right = 0;
  int bits = 0;  // of both
  for (size_t at = 0; at < a.size(); ++at) {
    left |= static_cast<uint32_t>(a[at]) << bits;
    right |= static_cast<uint32_t>(b[at]) << bits;
    for (bits += 8; bits >= T::kBits; bits -= T::kBits, left >>= T::kBits, right >>= T::kBits) {
      constexpr uint32_t kMask = (1U << T::kBits) - 1;
      if (((left ^ right) & kMask) == 0) continue;
      Add(static_cast<long double>(T{left & kMask}), static_cast<long double>(T{right & kMask}), difference);
    }
  }
}

Status CompareArrays(ArraySource& a, uint32_t in_a, ArraySource& b, uint32_t in_b, Difference* difference,
                     const std::function<void(uint64_t)>& compared) {
  const DType dtype = a.arrays()[in_a].dtype;
  const Box whole = Box::Whole(a.arrays()[in_a].shape);
  std::vector<std::byte> right;
  return Stream(a, in_a, whole, [&](const Box& box, std::span<const std::byte> bytes, uint64_t) -> Status {
    if (right.size() < bytes.size()) right.resize(bytes.size());
    const std::span<std::byte> other(right.data(), bytes.size());
    CAIRN_RETURN_IF_ERROR(b.Read(in_b, box, other));
    Compare(dtype, bytes, other, difference);
    compared(bytes.size());
    return OkStatus();
  });
}

std::string Form(const ArraySpec& array) {
  return std::string(DTypeName(array.dtype)) + " " + array.shape.ToString();
}

}  // namespace

void Compare(DType dtype, std::span<const std::byte> a, std::span<const std::byte> b,
             Difference* difference) {
  if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) return;
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return CompareAs<uint8_t>(a, b, difference);
    case DType::kI8:
      return CompareAs<int8_t>(a, b, difference);
    case DType::kF8E5M2:
      return CompareAs<F8E5M2>(a, b, difference);
    case DType::kF8E4M3:
      return CompareAs<F8E4M3>(a, b, difference);
    case DType::kF8E8M0:
      return CompareAs<F8E8M0>(a, b, difference);
    case DType::kF8E4M3Fnuz:
      return CompareAs<F8E4M3Fnuz>(a, b, difference);
    case DType::kF8E5M2Fnuz:
      return CompareAs<F8E5M2Fnuz>(a, b, difference);
    case DType::kF4:
      return ComparePacked<F4E2M1>(a, b, difference);
    case DType::kF6E2M3:
      return ComparePacked<F6E2M3>(a, b, difference);
    case DType::kF6E3M2:
      return ComparePacked<F6E3M2>(a, b, difference);
    case DType::kI16:
      return CompareAs<int16_t>(a, b, difference);
    case DType::kU16:
      return CompareAs<uint16_t>(a, b, difference);
    case DType::kF16:
      return CompareAs<F16>(a, b, difference);
    case DType::kBF16:
      return CompareAs<BF16>(a, b, difference);
    case DType::kI32:
      return CompareAs<int32_t>(a, b, difference);
    case DType::kU32:
      return CompareAs<uint32_t>(a, b, difference);
    case DType::kC64:
    case DType::kF32:
      return CompareAs<float>(a, b, difference);
    case DType::kF64:
      return CompareAs<double>(a, b, difference);
    case DType::kI64:
      return CompareAs<int64_t>(a, b, difference);
    case DType::kU64:
      return CompareAs<uint64_t>(a, b, difference);
  }
}

Result<std::vector<ArrayDiff>> Diff(ArraySource& a, ArraySource& b, const Progress& progress) {
  using Kind = ArrayDiff::Kind;
  std::map<std::string, uint32_t> in_b;
  for (uint32_t i = 0; i < b.arrays().size(); ++i) in_b.emplace(b.arrays()[i].name, i);
  std::vector<ArrayDiff> diffs;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;  // positions in A and B
  uint64_t total = 0, done = 0;
  for (uint32_t i = 0; i < a.arrays().size(); ++i) {
    const ArraySpec& array = a.arrays()[i];
    diffs.push_back({Kind::kOnlyInA, array.name, array.dtype, array.shape, {}, ""});
    const auto it = in_b.find(array.name);
    pairs.emplace_back(i, it == in_b.end() ? UINT32_MAX : it->second);
    if (it == in_b.end()) continue;
    const ArraySpec& other = b.arrays()[it->second];
    in_b.erase(it);
    if (other.dtype == array.dtype && other.shape == array.shape) {
      diffs.back().kind = Kind::kEqual;
      total += ArrayBytes(array);
    } else {
      diffs.back().kind = Kind::kOtherForm;
      diffs.back().forms = Form(array) + " and " + Form(other);
    }
  }
  for (const auto& [i, j] : pairs) {
    ArrayDiff& diff = diffs[i];
    if (diff.kind != Kind::kEqual) continue;
    CAIRN_RETURN_IF_ERROR(CompareArrays(a, i, b, j, &diff.difference, [&](uint64_t bytes) {
      done += bytes;
      if (progress) progress(done, total);
    }));
    if (diff.difference.differing > 0) diff.kind = Kind::kDiffers;
  }
  for (const ArraySpec& array : b.arrays()) {
    if (in_b.contains(array.name))
      diffs.push_back({Kind::kOnlyInB, array.name, array.dtype, array.shape, {}, ""});
  }
  return diffs;
}

}  // namespace cairn
