#include "runtime/interop/diff.h"

#include <gtest/gtest.h>

#include "runtime/interop/checkpoint_source.h"
#include "tests/runtime/hex.h"
#include "tests/runtime/interop/made_run.h"

namespace cairn {
namespace {

using Kind = ArrayDiff::Kind;

Difference Of(DType dtype, const std::string& a, const std::string& b) {
  const std::string left = FromHex(a), right = FromHex(b);
  Difference difference;
  Compare(dtype, std::as_bytes(std::span(left)), std::as_bytes(std::span(right)), &difference);
  return difference;
}

struct Case {
  DType dtype;
  const char *a, *b;  // one element, little-endian
  double max_abs, max_rel;
};

TEST(Compare, ReadsEveryElementType) {
  const std::vector<Case> cases = {
      {DType::kBool, "00", "01", 1, 1},
      {DType::kU8, "ff", "7f", 128, 128.0 / 255},
      {DType::kI8, "ff", "01", 2, 2},                // -1 and 1
      {DType::kF8E4M3, "38", "40", 1, 0.5},          // 1 and 2
      {DType::kF8E4M3, "01", "00", 0.001953125, 1},  // 2^-9, the smallest
      {DType::kF8E4M3, "7e", "fe", 896, 2},          // 448 and -448
      {DType::kF8E5M2, "3c", "40", 1, 0.5},          // 1 and 2
      {DType::kF8E5M2, "7b", "00", 57344, 1},        // the greatest
      {DType::kI16, "0080", "ff7f", 65535, 65535.0 / 32768},
      {DType::kU16, "ffff", "0000", 65535, 1},
      {DType::kF16, "003c", "0040", 1, 0.5},
      {DType::kF16, "0100", "0000", 5.9604644775390625e-08, 1},  // 2^-24, the smallest
      {DType::kBF16, "803f", "0040", 1, 0.5},
      {DType::kI32, "feffffff", "02000000", 4, 2},
      {DType::kU32, "ffffffff", "feffffff", 1, 1 / 4294967295.0},
      {DType::kF32, "0000803f", "00000040", 1, 0.5},
      {DType::kF64, "000000000000f03f", "0000000000000040", 1, 0.5},
      {DType::kI64, "ffffffffffffff7f", "feffffffffffff7f", 1, 1 / 9223372036854775807.0},
      {DType::kU64, "ffffffffffffffff", "feffffffffffffff", 1, 1 / 18446744073709551615.0},
      {DType::kC64, "0000803f00000040", "0000803f00000000", 2, 1},  // 1+2i and 1
      {DType::kF8E8M0, "7f", "81", 3, 0.75},                        // 1 and 4
      {DType::kF8E4M3Fnuz, "40", "48", 1, 0.5},                     // 1 and 2
      {DType::kF8E4M3Fnuz, "7f", "00", 240, 1},                     // the greatest
      {DType::kF8E4M3Fnuz, "01", "00", 0.0009765625, 1},            // 2^-10, the smallest
      {DType::kF8E5M2Fnuz, "7f", "ff", 114688, 2},                  // the greatest, and its negative
      {DType::kF8E5M2Fnuz, "01", "00", 7.62939453125e-06, 1},       // 2^-17, the smallest
      {DType::kF4, "07", "0f", 12, 2},                              // 6 and -6, in the lower half
      {DType::kF4, "10", "20", 0.5, 0.5},                           // 0.5 and 1, in the upper half
      {DType::kF6E2M3, "1f0000", "000000", 7.5, 1},                 // the greatest, as the first of four
      {DType::kF6E2M3, "400000", "000000", 0.125, 1},   // the smallest, as the second: bits 6 to 11
      {DType::kF6E3M2, "00f001", "000000", 28, 1},      // the greatest, as the third: bits 12 to 17
      {DType::kF6E3M2, "000004", "000000", 0.0625, 1},  // the smallest, as the fourth: bits 18 to 23
  };
  for (const Case& c : cases) {
    const Difference d = Of(c.dtype, c.a, c.b);
    EXPECT_EQ(d.differing, 1U) << DTypeName(c.dtype) << c.a;
    EXPECT_EQ(d.not_finite, 0U) << DTypeName(c.dtype) << c.a;
    EXPECT_DOUBLE_EQ(d.max_abs, c.max_abs) << DTypeName(c.dtype) << c.a;
    EXPECT_DOUBLE_EQ(d.max_rel, c.max_rel) << DTypeName(c.dtype) << c.a;
  }
}

TEST(Compare, CountsEachOfTheValuesThatShareBytes) {
  EXPECT_EQ(Of(DType::kF4, "2112", "1112").differing, 1U);
  EXPECT_EQ(Of(DType::kF4, "2112", "1221").differing, 4U);
  EXPECT_EQ(Of(DType::kF6E2M3, "ffffffffffff", "00f0ffffffff").differing, 2U);
  EXPECT_EQ(Of(DType::kF6E3M2, "ffffff", "000000").differing, 4U);
}

TEST(Compare, FindsTheGreatestDifferencesWhereverTheyAre) {
  const Difference d = Of(DType::kU8, "0a64c801", "05c8c800");  // by 5, by 100, none, by 1
  EXPECT_EQ(d.differing, 3U);
  EXPECT_EQ(d.max_abs, 100);
  EXPECT_EQ(d.max_rel, 1);  // of the last: all of it

  const Difference e = Of(DType::kU8, "01640a", "00c805");
  EXPECT_EQ(e.max_abs, 100);
  EXPECT_EQ(e.max_rel, 1);  // of the first
}

TEST(Compare, KeepsNanAndInfinityOutOfTheMaxima) {
  for (const auto& [dtype, a, b] : std::vector<std::tuple<DType, const char*, const char*>>{
           {DType::kF32, "0000c07f0000803f", "0000803f0000803f"},  // NaN
           {DType::kF32, "0000807f0000803f", "0000803f0000803f"},  // infinity
           {DType::kF8E4M3, "7f", "38"},                           // NaN
           {DType::kF8E5M2, "7c", "3c"},                           // infinity
           {DType::kF8E8M0, "ff", "7f"},                           // NaN
           {DType::kF8E4M3Fnuz, "80", "40"},                       // NaN
           {DType::kF8E5M2Fnuz, "80", "40"},                       // NaN
           {DType::kBF16, "807f", "803f"}}) {                      // infinity
    const Difference d = Of(dtype, a, b);
    EXPECT_EQ(d.differing, 1U);
    EXPECT_EQ(d.not_finite, 1U);
    EXPECT_EQ(d.max_abs, 0);
  }
}

TEST(Compare, TakesEqualBitsAsEqualAlsoOfNan) {
  EXPECT_EQ(Of(DType::kF32, "0000c07f", "0000c07f").differing, 0U);
  const Difference zeros = Of(DType::kF32, "00000000", "00000080");  // 0 and -0
  EXPECT_EQ(zeros.differing, 1U);
  EXPECT_EQ(zeros.max_abs, 0);
  EXPECT_EQ(zeros.max_rel, 0);
}

std::vector<ArrayDiff> DiffOf(const MadeRun& a, const MadeRun& b) {
  const auto left = CheckpointSource::Open(a.dir(), a.checkpoint());
  const auto right = CheckpointSource::Open(b.dir(), b.checkpoint());
  EXPECT_TRUE(left.ok() && right.ok());
  auto diffs = Diff(**left, **right, nullptr);
  EXPECT_TRUE(diffs.ok()) << diffs.status().message();
  return diffs.ok() ? *diffs : std::vector<ArrayDiff>();
}

TEST(Diff, FindsTheSameStateInAnotherLayoutEqual) {
  const MadeRun a(AllKinds());
  std::vector<MadeArray> recut = a.arrays();
  for (MadeArray& array : recut) array.boxes.clear();
  const MadeRun b(std::move(recut));
  const std::vector<ArrayDiff> diffs = DiffOf(a, b);
  ASSERT_EQ(diffs.size(), AllKinds().size());
  for (const ArrayDiff& diff : diffs) EXPECT_EQ(diff.kind, Kind::kEqual) << diff.name;
}

TEST(Diff, NamesWhatDiffersWhatHasAnotherFormAndWhatIsMissing) {
  const std::string one = FromHex("0000803f"), two = FromHex("00000040");
  const MadeRun a({{{"same", DType::kF32, false, {2}}, one + two, {}},
                   {{"changed", DType::kF32, false, {2}}, one + one, {}},
                   {{"reshaped", DType::kF32, false, {2}}, "", {}},
                   {{"gone", DType::kF32, false, {2}}, "", {}}});
  const MadeRun b({{{"new", DType::kF32, false, {2}}, "", {}},
                   {{"reshaped", DType::kF32, false, {2, 1}}, "", {}},
                   {{"changed", DType::kF32, false, {2}}, one + two, {}},
                   {{"same", DType::kF32, false, {2}}, one + two, {}}});
  const std::vector<ArrayDiff> diffs = DiffOf(a, b);
  ASSERT_EQ(diffs.size(), 5U);
  EXPECT_EQ(diffs[0].kind, Kind::kEqual);
  EXPECT_EQ(diffs[1].kind, Kind::kDiffers);
  EXPECT_EQ(diffs[1].difference.differing, 1U);
  EXPECT_EQ(diffs[1].difference.max_abs, 1);
  EXPECT_EQ(diffs[2].kind, Kind::kOtherForm);
  EXPECT_EQ(diffs[2].forms, "F32 [2] and F32 [2, 1]");
  EXPECT_EQ(diffs[3].kind, Kind::kOnlyInA);
  EXPECT_EQ(diffs[4].kind, Kind::kOnlyInB);
  EXPECT_EQ(diffs[4].name, "new");
}

}  // namespace
}  // namespace cairn
