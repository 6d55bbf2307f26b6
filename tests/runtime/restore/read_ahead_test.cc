#include "runtime/restore/read_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "runtime/formats/sums.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Each byte of block b is b. Records which blocks were asked for together.
class Numbered : public Readable {
 public:
  Result<uint64_t> Bytes() const override { return Status(Code::kInternal, "not asked for"); }
  Status Read(uint64_t, std::span<std::byte>) const override {
    return {Code::kInternal, "one after the other"};
  }
  Status ReadAgain(uint64_t, std::span<std::byte>, size_t) const override {
    return {Code::kInternal, "not asked for"};
  }
  Status ReadRanges(std::span<const ObjectRange> ranges) const override {
    std::vector<uint64_t> blocks;
    for (const ObjectRange& range : ranges) {
      blocks.push_back(range.offset / kBlockBytes);
      std::fill(range.to.begin(), range.to.end(), static_cast<std::byte>(blocks.back()));
    }
    const std::lock_guard lock(mutex_);
    calls_.push_back(blocks);
    return std::count(blocks.begin(), blocks.end(), bad) > 0 ? Status(Code::kDamage, "ends early")
                                                             : OkStatus();
  }
  std::vector<std::vector<uint64_t>> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

  uint64_t bad = UINT64_MAX;

 private:
  mutable std::mutex mutex_;
  mutable std::vector<std::vector<uint64_t>> calls_;
};

constexpr uint64_t kFileBytes = 20 * kBlockBytes + 7;

void Expect(ReadAhead& ahead, uint64_t block, size_t bytes = kBlockBytes) {
  const auto taken = ahead.Take(block);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  ASSERT_EQ(taken->size(), bytes);
  EXPECT_EQ(taken->front(), static_cast<std::byte>(block));
  EXPECT_EQ(taken->back(), static_cast<std::byte>(block));
}

TEST(ReadAhead, FetchesThePlannedBlocksEightAtATime) {
  Numbered file;
  const std::vector<uint64_t> planned = {0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20};
  {
    ReadAhead ahead(file, kFileBytes, planned);
    for (const uint64_t block : planned) Expect(ahead, block, block == 20 ? 7 : kBlockBytes);
  }
  EXPECT_THAT(file.calls(), ElementsAre(ElementsAre(0, 1, 2, 3, 5, 6, 7, 8),
                                        ElementsAre(9, 10, 11, 12, 13, 14, 15, 16), ElementsAre(18, 20)));
}

TEST(ReadAhead, FetchesTheNextBlocksWhileTheseAreUsed) {
  Numbered file;
  {
    ReadAhead ahead(file, kFileBytes, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17});
    Expect(ahead, 0);
  }
  EXPECT_EQ(file.calls().size(), 2u);  // and the third not yet
}

TEST(ReadAhead, FetchesByItselfWhatWasNotPlanned) {
  Numbered file;
  {
    ReadAhead ahead(file, kFileBytes, {3, 4});
    Expect(ahead, 20, 7);
    Expect(ahead, 3);
    Expect(ahead, 9);
    Expect(ahead, 4);
    Expect(ahead, 4);
  }
  EXPECT_THAT(file.calls(), ElementsAre(ElementsAre(20), ElementsAre(3, 4), ElementsAre(9), ElementsAre(4)));
}

TEST(ReadAhead, FailsWithTheStoreAndOnlyForWhatThatConcerns) {
  Numbered file;
  file.bad = 9;
  ReadAhead ahead(file, kFileBytes, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  for (uint64_t block = 0; block < 8; ++block) Expect(ahead, block);
  EXPECT_EQ(ahead.Take(8).status().code(), Code::kDamage);
  EXPECT_EQ(ahead.Take(8).status().code(), Code::kDamage);
}

TEST(ReadAhead, FetchesNothingBeforeSomethingIsAskedFor) {
  Numbered file;
  { ReadAhead ahead(file, kFileBytes, {0, 1}); }
  EXPECT_THAT(file.calls(), IsEmpty());
}

}  // namespace
}  // namespace cairn
