#include "runtime/restore/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "runtime/formats/sums.h"

namespace cairn {
namespace {

TEST(Arena, ShowsATakerWhatTheReaderHasPutIntoAPlace) {
  auto reader = Arena::Make();
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  auto taker = Arena::Open(UniqueFd(dup(reader->fd())));
  ASSERT_TRUE(taker.ok()) << taker.status().message();
  for (uint32_t place = 0; place < Arena::kPlaces; ++place) {
    ASSERT_EQ(reader->At(place).size(), kBlockBytes);
    reader->At(place)[0] = std::byte(1 + place);
    reader->At(place)[kBlockBytes - 1] = std::byte(101 + place);
  }
  for (uint32_t place = 0; place < Arena::kPlaces; ++place) {
    EXPECT_EQ(taker->At(place)[0], std::byte(1 + place));
    EXPECT_EQ(taker->At(place)[kBlockBytes - 1], std::byte(101 + place));
  }
}

TEST(Arena, GivesAPlaceAgainWhenAllHaveDroppedIt) {
  auto reader = Arena::Make();
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  auto taker = Arena::Open(UniqueFd(dup(reader->fd())));
  ASSERT_TRUE(taker.ok()) << taker.status().message();
  const auto breaker = *Breaker::Make();
  for (uint32_t place = 0; place < Arena::kPlaces; ++place) EXPECT_EQ(*reader->Take(*breaker), place);
  reader->Hold(0);
  reader->Drop(0);
  auto again = std::async(std::launch::async, [&] { return reader->Take(*breaker); });
  EXPECT_EQ(again.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  taker->Drop(0);
  EXPECT_EQ(*again.get(), 0u);
}

// It does not only look now and then: the quickest of some tries is far below that.
TEST(Arena, IsWokenByTheLastThatDropsAPlace) {
  auto arena = Arena::Make();
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  const auto breaker = *Breaker::Make();
  for (uint32_t place = 0; place < Arena::kPlaces; ++place) ASSERT_TRUE(arena->Take(*breaker).ok());
  auto quickest = std::chrono::steady_clock::duration::max();
  for (uint32_t i = 0; i < 20; ++i) {
    auto again = std::async(std::launch::async, [&] {
      EXPECT_TRUE(arena->Take(*breaker).ok());
      return std::chrono::steady_clock::now();
    });
    EXPECT_EQ(again.wait_for(std::chrono::milliseconds(5)), std::future_status::timeout);
    const auto dropped = std::chrono::steady_clock::now();
    arena->Drop(i % Arena::kPlaces);
    quickest = std::min(quickest, again.get() - dropped);
  }
  EXPECT_LT(quickest, std::chrono::milliseconds(20));
}

TEST(Arena, WaitsNoLongerThanTheBreaker) {
  auto arena = Arena::Make();
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  const auto breaker = *Breaker::Make();
  for (uint32_t place = 0; place < Arena::kPlaces; ++place) ASSERT_TRUE(arena->Take(*breaker).ok());
  auto never = std::async(std::launch::async, [&] { return arena->Take(*breaker); });
  breaker->Break({Code::kUnavailable, "rank 1 is gone"});
  EXPECT_EQ(never.get().status().message(), "rank 1 is gone");
}

TEST(Arena, RefusesADescriptorThatCouldShrink) {
  UniqueFd open(memfd_create("test", MFD_CLOEXEC));
  auto arena = Arena::Make();
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  ASSERT_EQ(ftruncate(open.get(), static_cast<off_t>(Arena::kPlaces * kBlockBytes + 4096)), 0);
  EXPECT_EQ(Arena::Open(std::move(open)).status().code(), Code::kInvalid);
  EXPECT_NE(ftruncate(arena->fd(), 0), 0);
}

}  // namespace
}  // namespace cairn
