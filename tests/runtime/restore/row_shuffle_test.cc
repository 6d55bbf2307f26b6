// Ranks as threads of one process, with real sockets, and with a carrier.
#include "runtime/restore/row_shuffle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "tests/runtime/restore/meeting.h"

namespace cairn {
namespace {

using ::testing::ElementsAreArray;

Result<std::vector<uint32_t>> Shuffled(Meeting& meeting, uint32_t rank, uint32_t world_size,
                                       const std::vector<uint32_t>& rows, const std::vector<uint32_t>& owners,
                                       bool carried) {
  const CarriedRound round = meeting.RoundOf(rank);
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                         ShuffleRows("p", std::as_bytes(std::span(rows)), sizeof(uint32_t), owners,
                                     world_size, meeting.LinksOf(rank), carried ? &round : nullptr));
  std::vector<uint32_t> out(bytes.size() / sizeof(uint32_t));
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

class RowShuffle : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Over, RowShuffle, ::testing::Bool(),
                         [](const auto& over) { return over.param ? "Carrier" : "Sockets"; });

// Rank r gives rows 1000 r, 1000 r + 1, …, each to rank (row mod 7) mod 4; rank 3 gives none, and so many come from rank 0 that they take
// several messages.
TEST_P(RowShuffle, EveryRowGoesToItsOwnerInTheOrderOfTheRanks) {
  constexpr uint32_t kRanks = 4;
  const uint32_t counts[kRanks] = {3'000'000, 5, 9, 0};
  Meeting meeting(kRanks);
  std::vector<std::vector<uint32_t>> rows(kRanks), owners(kRanks), expected(kRanks);
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    for (uint32_t i = 0; i < counts[rank]; ++i) {
      rows[rank].push_back(1000 * rank + i);
      owners[rank].push_back((1000 * rank + i) % 7 % 4);
      expected[owners[rank].back()].push_back(rows[rank].back());
    }
  }
  std::vector<std::future<Result<std::vector<uint32_t>>>> parts;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    parts.push_back(std::async(std::launch::async, [&, rank] {
      auto got = Shuffled(meeting, rank, kRanks, rows[rank], owners[rank], GetParam());
      meeting.Leave(rank);
      return got;
    }));
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const auto got = parts[rank].get();
    ASSERT_TRUE(got.ok()) << got.status().message();
    EXPECT_TRUE(*got == expected[rank]) << "rank " << rank << " got " << got->size() << " rows";
  }
  EXPECT_EQ(meeting.carriers.under_way(), 0u);
}

TEST_P(RowShuffle, OneRankAsksNobody) {
  Meeting meeting(1);
  const auto got = Shuffled(meeting, 0, 1, {3, 1, 2}, {0, 0, 0}, GetParam());
  ASSERT_TRUE(got.ok());
  EXPECT_THAT(*got, ElementsAreArray({3, 1, 2}));
  EXPECT_EQ(meeting.questions, 0);
}

TEST(RowShuffleOverSockets, TakesNoFewerAndNoMoreRowsThanTheirRankCounts) {
  for (const uint64_t counted : {1, 2, 3}) {
    Meeting meeting(2);
    PlayedRank other(meeting, 1, " rows of p");
    auto got = std::async(std::launch::async, [&] { return Shuffled(meeting, 0, 2, {7, 8}, {0, 1}, false); });
    const std::vector<uint32_t> rows = {1001, 1002};
    ASSERT_TRUE(other.Send(0, {1, {}}, std::as_bytes(std::span(rows))).ok());
    (void)other.Send(0, {2, {counted, 0, 0}}, {});
    const auto all = got.get();
    ASSERT_EQ(all.ok(), counted == 2);
    if (all.ok()) {
      EXPECT_THAT(*all, ElementsAreArray({7, 1001, 1002}));
    } else {
      EXPECT_THAT(all.status().message(), ::testing::HasSubstr("rows of rank 1 are missing"));
    }
  }
}

TEST_P(RowShuffle, EndsWhenARankGivesUp) {
  Meeting meeting(3);
  std::vector<std::future<Result<std::vector<uint32_t>>>> parts;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    parts.push_back(std::async(std::launch::async, [&, rank] {
      return Shuffled(meeting, rank, 3, {1, 2}, {0, 1}, GetParam());
    }));
  }
  meeting.BreakAll({Code::kCancelled, "rank 2 has failed"});
  for (auto& part : parts) EXPECT_FALSE(part.get().ok());
}

}  // namespace
}  // namespace cairn
