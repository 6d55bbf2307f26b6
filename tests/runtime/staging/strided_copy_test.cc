#include "runtime/staging/strided_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/planner/oracle.h"

namespace cairn {
namespace {

TEST(StridedCopy, MergesWhatIsContiguousInBothMemories) {
  // [4, 6, 8] of 2-byte elements. Source: rows of 8 inside rows of 10; planes without gap; destination dense.
  const StridedCopy rows = StridedCopy::Make({4, 6, 8}, 2, {120, 20, 2}, {96, 16, 2});
  EXPECT_EQ(rows.run_bytes, 16);
  EXPECT_EQ(rows.loops, 1);  // 120 = 6 * 20 and 96 = 6 * 16: planes and rows are one loop
  EXPECT_EQ(rows.count[0], 24);
  EXPECT_EQ(rows.runs(), 24);

  const StridedCopy planes = StridedCopy::Make({4, 6, 8}, 2, {200, 16, 2}, {96, 16, 2});
  EXPECT_EQ(planes.run_bytes, 96);
  EXPECT_EQ(planes.loops, 1);
  EXPECT_EQ(planes.count[0], 4);

  const StridedCopy dense = StridedCopy::Make({4, 6, 8}, 2, {96, 16, 2}, {96, 16, 2});
  EXPECT_EQ(dense.run_bytes, 384);
  EXPECT_EQ(dense.loops, 0);

  const StridedCopy transposed = StridedCopy::Make({3, 5}, 4, {4, 12}, {20, 4});
  EXPECT_EQ(transposed.run_bytes, 4);
  EXPECT_EQ(transposed.loops, 2);
  EXPECT_EQ(transposed.runs(), 15);
}

TEST(StridedCopy, OfAnEmptyBoxCopiesNothingAndOfAScalarOneElement) {
  const StridedCopy empty = StridedCopy::Make({4, 0}, 8, {8, 8}, {8, 8});
  EXPECT_EQ(empty.runs(), 0);
  empty.Run(nullptr, nullptr);

  const StridedCopy scalar = StridedCopy::Make({}, 8, {}, {});
  const int64_t from = 42;
  int64_t to = 0;
  scalar.Run(reinterpret_cast<const std::byte*>(&from), reinterpret_cast<std::byte*>(&to));
  EXPECT_EQ(to, 42);
}

// Strides of a box inside a dense box that is larger by `margin` in every dimension.
Dims StridesInside(const Dims& extent, const Dims& margin, int64_t element) {
  Dims strides = Dims::Filled(extent.size(), element);
  for (int d = extent.size() - 2; d >= 0; --d) strides[d] = strides[d + 1] * (extent[d + 1] + margin[d + 1]);
  return strides;
}

struct Case {
  int64_t element;
  Dims extent, src, dst;
  std::vector<std::byte> source, expected;
};

Case RandomCase(Random& random) {
  Case c;
  c.element = int64_t{1} << Uniform(random, 0, 4);
  if (Uniform(random, 0, 9) == 0) c.element = 3;
  Dims src_margin, dst_margin;
  for (int64_t d = Uniform(random, 0, 4); d > 0; --d) {
    c.extent.push_back(Uniform(random, 1, 6));
    src_margin.push_back(Uniform(random, 0, 1) * Uniform(random, 0, 3));
    dst_margin.push_back(Uniform(random, 0, 1) * Uniform(random, 0, 3));
  }
  c.src = StridesInside(c.extent, src_margin, c.element);
  c.dst = StridesInside(c.extent, dst_margin, c.element);
  Dims src_extent = c.extent, dst_extent = c.extent;
  for (int d = 0; d < c.extent.size(); ++d) {
    src_extent[d] += src_margin[d];
    dst_extent[d] += dst_margin[d];
  }
  c.source.resize(static_cast<size_t>(src_extent.Product() * c.element));
  for (std::byte& b : c.source) b = static_cast<std::byte>(random());
  c.expected.assign(static_cast<size_t>(dst_extent.Product() * c.element), std::byte{0xEE});
  ForEachElement(Box::Whole(c.extent), [&](const Dims& at) {
    int64_t src = 0, dst = 0;
    for (int d = 0; d < at.size(); ++d) {
      src += at[d] * c.src[d];
      dst += at[d] * c.dst[d];
    }
    for (int64_t b = 0; b < c.element; ++b)
      c.expected[static_cast<size_t>(dst + b)] = c.source[static_cast<size_t>(src + b)];
  });
  return c;
}

TEST(StridedCopy, MovesEveryElementOfRandomBoxesAndNothingElse) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const Case c = RandomCase(random);
    std::vector<std::byte> found(c.expected.size(), std::byte{0xEE});
    StridedCopy::Make(c.extent, c.element, c.src, c.dst).Run(c.source.data(), found.data());
    ASSERT_EQ(found, c.expected) << "case " << i << " " << c.extent.ToString();
  }
}

TEST(StridedCopy, MovesABoxInPartsAsItDoesAtOnce) {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    Case c = RandomCase(random);
    c.dst = DenseStrides(c.extent, c.element);
    const StridedCopy copy = StridedCopy::Make(c.extent, c.element, c.src, c.dst);
    std::vector<std::byte> expected, found(static_cast<size_t>(c.extent.Product() * c.element));
    ForEachElement(Box::Whole(c.extent), [&](const Dims& at) {
      int64_t src = 0;
      for (int d = 0; d < at.size(); ++d) src += at[d] * c.src[d];
      for (int64_t b = 0; b < c.element; ++b) expected.push_back(c.source[static_cast<size_t>(src + b)]);
    });
    ASSERT_EQ(copy.bytes(), static_cast<int64_t>(expected.size()));
    for (int64_t begin = 0; begin < copy.bytes();) {
      const int64_t end = std::min(copy.bytes(), begin + Uniform(random, 1, 40));
      // A buffer of its own for each part: the sanitizer sees a byte too many.
      std::vector<std::byte> part(static_cast<size_t>(end - begin), std::byte{0xEE});
      copy.Run(c.source.data(), part.data(), begin, end);
      std::copy(part.begin(), part.end(), found.begin() + begin);
      begin = end;
    }
    ASSERT_EQ(found, expected) << "case " << i << " " << c.extent.ToString();
  }
}

TEST(StridedCopy, MovesPartsOfLongRunsWhateverTheirAlignment) {
  Random random(9);
  for (int i = 0; i < 300; ++i) {
    const int64_t row = Uniform(random, 500, 3000), rows = Uniform(random, 1, 4), gap = Uniform(random, 0, 9);
    std::vector<std::byte> source(static_cast<size_t>(rows * (row + gap)));
    for (std::byte& b : source) b = static_cast<std::byte>(random());
    const int64_t begin = Uniform(random, 0, rows * row - 1), end = Uniform(random, begin + 1, rows * row);
    std::vector<std::byte> expected, found(static_cast<size_t>(end - begin), std::byte{0xEE});
    for (int64_t b = begin; b < end; ++b)
      expected.push_back(source[static_cast<size_t>(b / row * (row + gap) + b % row)]);
    StridedCopy::Make({rows, row}, 1, {row + gap, 1}, {row, 1}).Run(source.data(), found.data(), begin, end);
    ASSERT_EQ(found, expected) << "case " << i;
  }
}

TEST(StridedCopy, MovesLongRunsWhateverTheirAlignment) {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    const int64_t row = Uniform(random, 500, 1500), rows = Uniform(random, 1, 3), gap = Uniform(random, 0, 9);
    const auto src_at = static_cast<size_t>(Uniform(random, 0, 70)),
               dst_at = static_cast<size_t>(Uniform(random, 0, 70));
    std::vector<std::byte> source(src_at + static_cast<size_t>(rows * (row + gap)));
    for (std::byte& b : source) b = static_cast<std::byte>(random());
    std::vector<std::byte> found(dst_at + static_cast<size_t>(rows * row) + 70, std::byte{0xEE}),
        expected = found;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t b = 0; b < row; ++b) {
        expected[dst_at + static_cast<size_t>(r * row + b)] =
            source[src_at + static_cast<size_t>(r * (row + gap) + b)];
      }
    }
    StridedCopy::Make({rows, row}, 1, {row + gap, 1}, {row, 1})
        .Run(source.data() + src_at, found.data() + dst_at);
    ASSERT_EQ(found, expected) << rows << " rows of " << row;
  }
}

TEST(WindowedCopy, MovesTheSameWhateverTheWindows) {
  Random random(2);
  for (int i = 0; i < 2000; ++i) {
    const Case c = RandomCase(random);
    std::vector<std::byte> found(c.expected.size(), std::byte{0xEE});
    const auto start = static_cast<uint64_t>(Uniform(random, 0, 50));
    WindowedCopy copy(StridedCopy::Make(c.extent, c.element, c.src, c.dst), start, found.data());
    const uint64_t end = start + c.source.size();
    for (uint64_t begin = start; begin < end;) {
      const uint64_t next = std::min(end, begin + static_cast<uint64_t>(Uniform(random, 1, 60)));
      // A copy of exactly the window, so that a sanitizer sees a read outside of it.
      const std::vector<std::byte> window(c.source.begin() + static_cast<int64_t>(begin - start),
                                          c.source.begin() + static_cast<int64_t>(next - start));
      copy.Feed(window.data(), begin, next);
      begin = next;
    }
    EXPECT_TRUE(copy.done());
    ASSERT_EQ(found, c.expected) << "case " << i << " " << c.extent.ToString();
  }
}

TEST(WindowedCopy, IsNotDoneWhenAWindowWasLeftOut) {
  std::vector<std::byte> source(64), found(64);
  WindowedCopy copy(StridedCopy::Make({64}, 1, {1}, {1}), 100, found.data());
  copy.Feed(source.data(), 100, 132);
  copy.Feed(source.data(), 140, 164);
  EXPECT_FALSE(copy.done());
  EXPECT_EQ(copy.next_position(), 132u);
}

}  // namespace
}  // namespace cairn
