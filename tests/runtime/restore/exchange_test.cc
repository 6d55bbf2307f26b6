// Ranks as threads of one process, with real files; they hand each other what they read over sockets, and over a carrier.
#include "runtime/restore/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "runtime/formats/sums.h"
#include "tests/runtime/restore/meeting.h"
#include "tests/runtime/staging/ranks.h"
#include "tests/support/memory_store.h"

namespace cairn {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr LoadOptions kNoWaiting{.attribute_cache_bound = std::chrono::milliseconds(0)};

std::vector<uint32_t> SameArrays(const Layout& layout) {
  std::vector<uint32_t> same;
  for (uint32_t a = 0; a < layout.arrays.size(); ++a) same.push_back(a);
  return same;
}

Result<LoadStats> LoadRank(const SavedLayout& saved, const std::vector<SourceFile>& files,
                           const Layout& layout, uint32_t rank, const std::vector<Destination>& to,
                           Meeting& ranks, bool carried, const LoadOptions& options = kNoWaiting) {
  CAIRN_ASSIGN_OR_RETURN(const SavedIndex index, SavedIndex::Make(saved));
  const LayoutIndex wanted(layout);
  const std::vector<uint32_t> same = SameArrays(layout);
  CAIRN_ASSIGN_OR_RETURN(const ExchangePlan plan, PlanExchange({index, wanted, same}, rank));
  if (carried) return ExecuteCarried(plan, files, to, ranks.RoundOf(rank), options);
  return ExecuteExchange(plan, files, to, ranks.LinksOf(rank), options);
}

class Exchange : public ::testing::TestWithParam<bool> {
 protected:
  const bool carried_ = GetParam();
};
INSTANTIATE_TEST_SUITE_P(Over, Exchange, ::testing::Bool(),
                         [](const auto& over) { return over.param ? "Carrier" : "Sockets"; });

TEST_P(Exchange, BringsAnyLayoutIntoAnyOther) {
  Random random(21);
  for (int i = 0; i < 25; ++i) {
    TempDir dir;
    const std::vector<ArraySpec> arrays = RandomArrays(random);
    const Layout from = RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 5)));
    const StoreInUse in_use(std::make_shared<MemoryStore>());
    const std::string where = i % 5 == 0 ? "s3://bucket/run" : dir.path();
    const auto index = SaveLayout(random, from, {.setting = "none", .job = "1", .node = "n1"}, where);
    ASSERT_TRUE(index.ok()) << index.status().message();
    const Layout to = RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 5)));
    Meeting ranks(to.world_size);
    LoadOptions options = kNoWaiting;
    if (i % 2 == 0) options.direct_run_bytes = 1;
    if (i % 3 == 0) options.share_bytes = 1;
    std::vector<std::unique_ptr<RankMemory>> memory;
    std::vector<std::future<Result<LoadStats>>> loads;
    for (uint32_t r = 0; r < to.world_size; ++r) {
      memory.push_back(std::make_unique<RankMemory>(random, to, r));
      loads.push_back(std::async(std::launch::async, [&, r, destinations = memory[r]->destinations()] {
        auto stats =
            LoadRank(index->saved, SourceFiles(*index, where), to, r, destinations, ranks, carried_, options);
        ranks.Leave(r);
        return stats;
      }));
    }
    uint64_t blocks = 0, needed = 0, expected = 0;
    for (uint32_t r = 0; r < to.world_size; ++r) {
      const auto stats = loads[r].get();
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      memory[r]->Check();
      blocks += stats->blocks_verified;
      needed += stats->needed_bytes;
    }
    EXPECT_LE(blocks, index->files.size());  // each is one block
    for (const ArraySpec& array : arrays)
      expected += static_cast<uint64_t>(array.shape.Product() * DTypeBytes(array.dtype));
    EXPECT_EQ(needed, expected);
    EXPECT_EQ(ranks.carriers.under_way(), 0u);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "round " << i;
  }
}

// An array of rows of 1 KiB in files of 13 MiB (four blocks), two for each.
struct Table {
  static constexpr int64_t kRows = 26 << 10, kWidth = 1024, kHeader = 4096;

  Table() {
    for (uint32_t f = 0; f < 2; ++f) {
      const int64_t rows = kRows / 2, first = f * rows;
      std::string bytes(static_cast<size_t>(kHeader), 'h');
      for (int64_t r = first; r < first + rows; ++r) bytes += Row(r);
      const std::string path = dir.path() + "/shard" + std::to_string(f);
      std::ofstream(path, std::ios::binary) << bytes;
      Sums sums{bytes.size(), {}};
      for (uint64_t b = 0; b < BlockCount(bytes.size()); ++b)
        sums.blocks.push_back(Hash128Of(std::string_view(bytes).substr(b * kBlockBytes, kBlockBytes)));
      std::ofstream(path + ".sums", std::ios::binary) << EncodeSums(sums);
      files.push_back({path, path + ".sums", bytes.size(), sums.Root()});
      saved.boxes.push_back({0, f, kHeader, Box{{first, 0}, {rows, kWidth}}});
    }
  }
  static const std::string& Row(int64_t row) {
    static const std::vector<std::string> kRowsOfAllKinds = [] {
      std::vector<std::string> kinds;
      for (int64_t kind = 0; kind < 256; ++kind) {
        kinds.emplace_back();
        for (int64_t column = 0; column < kWidth; ++column)
          kinds.back() += static_cast<char>(kind + column * 7 + column / 256);
      }
      return kinds;
    }();
    return kRowsOfAllKinds[static_cast<size_t>((row * 31 + row / 251) % 256)];
  }

  // Loads the pieces, one for each rank.
  std::vector<Result<LoadStats>> Load(const std::vector<Box>& pieces, Meeting& ranks, bool carried,
                                      const LoadOptions& options = kNoWaiting) {
    std::vector<Piece> held;
    for (uint32_t r = 0; r < pieces.size(); ++r) held.push_back({0, r, 0, pieces[r]});
    const Layout layout = MakeLayout(static_cast<uint32_t>(pieces.size()), saved.arrays, held);
    memory.assign(pieces.size(), "");
    std::vector<std::future<Result<LoadStats>>> loads;
    for (uint32_t r = 0; r < pieces.size(); ++r) {
      loads.push_back(std::async(std::launch::async, [&, r] {
        memory[r].assign(static_cast<size_t>(pieces[r].elements()), '?');
        const std::vector<Destination> to = {
            {reinterpret_cast<std::byte*>(memory[r].data()), pieces[r], {pieces[r].extent[1], 1}, 1}};
        auto stats = LoadRank(saved, files, layout, r, to, ranks, carried, options);
        if (!stats.ok()) ranks.AbandonRound();
        ranks.Leave(r);
        return stats;
      }));
    }
    std::vector<Result<LoadStats>> results;
    for (auto& load : loads) results.push_back(load.get());
    EXPECT_EQ(ranks.carriers.under_way(), 0u);
    return results;
  }

  void Check(const std::vector<Box>& pieces) const {
    for (size_t r = 0; r < pieces.size(); ++r) {
      const std::string_view held = memory[r];
      const auto first = static_cast<size_t>(pieces[r].offset[1]);
      const auto width = static_cast<size_t>(pieces[r].extent[1]);
      for (int64_t row = 0; row < pieces[r].extent[0]; ++row) {
        ASSERT_EQ(held.substr(static_cast<size_t>(row) * width, width),
                  std::string_view(Row(pieces[r].offset[0] + row)).substr(first, width))
            << "rank " << r << ", row " << row;
      }
    }
  }

  TempDir dir;
  SavedLayout saved{{{"t", DType::kU8, false, {kRows, kWidth}}}, {}};
  std::vector<SourceFile> files;
  std::vector<std::string> memory;
};

const Box kWhole{{0, 0}, {Table::kRows, Table::kWidth}};
const Box kLeft{{0, 0}, {Table::kRows, 512}}, kRight{{0, 512}, {Table::kRows, 512}};

TEST_P(Exchange, ReadsEachBlockOnceForReplicasAndForColumns) {
  Table table;
  for (const auto& pieces :
       {std::vector<Box>{kWhole, kWhole, kWhole}, {kLeft, kRight}, {kLeft, kWhole, kRight, kLeft}}) {
    for (const bool share : {false, true}) {
      LoadOptions options = kNoWaiting;
      if (share) options.share_bytes = 1;
      Meeting ranks(static_cast<uint32_t>(pieces.size()));
      uint64_t blocks = 0, needed = 0;
      for (const auto& stats : table.Load(pieces, ranks, carried_, options)) {
        ASSERT_TRUE(stats.ok()) << stats.status().message();
        EXPECT_GE(stats->blocks_verified, 8 / pieces.size());
        blocks += stats->blocks_verified;
        needed += stats->needed_bytes;
      }
      EXPECT_EQ(blocks, 8u);
      EXPECT_GE(ranks.movements, carried_ ? 8 : 0);  // the leader may know that they get on
      EXPECT_EQ(needed, static_cast<uint64_t>(Table::kRows * Table::kWidth));
      table.Check(pieces);
      ASSERT_FALSE(::testing::Test::HasFailure()) << "share " << share;
    }
  }
}

TEST_P(Exchange, AsksAndConnectsNobodyWhereNothingIsShared) {
  Table table;
  const std::vector<Box> halves = {{{0, 0}, {Table::kRows / 2, Table::kWidth}},
                                   {{Table::kRows / 2, 0}, {Table::kRows / 2, Table::kWidth}}};
  Meeting ranks(2);
  for (const auto& stats : table.Load(halves, ranks, carried_))
    ASSERT_TRUE(stats.ok()) << stats.status().message();
  EXPECT_EQ(ranks.questions, 0);
  table.Check(halves);
}

TEST_P(Exchange, ReadsACopyNearByWhereItMatchesAndTheFileForTheRest) {
  Table table;
  for (SourceFile& file : table.files) {
    file.near = file.path + ".near";
    std::filesystem::copy_file(file.path, file.near);
    FlipBit(file.near, 8 * (5 << 20));  // block 1 of four
    for (const uint64_t block : {0, 2, 3}) FlipBit(file.path, 8 * ((block << 22) + 1000));
  }
  Meeting ranks(1);
  const auto stats = table.Load({kWhole}, ranks, carried_);
  ASSERT_TRUE(stats[0].ok()) << stats[0].status().message();
  const uint64_t bytes = table.files[0].size_bytes + table.files[1].size_bytes;
  EXPECT_EQ(stats[0]->near_bytes, bytes);
  EXPECT_EQ(stats[0]->read_bytes, bytes + 2 * kBlockBytes);
  table.Check({kWhole});
}

TEST_P(Exchange, TakesFilesThatHaveNoSumsAsTheyAre) {
  Table table;
  for (size_t f = 0; f < table.files.size();
       ++f) {  // three bytes more before the rows: they are aligned to nothing
    SourceFile& file = table.files[f];
    std::string bytes(static_cast<size_t>(std::filesystem::file_size(file.path)), '\0');
    std::ifstream(file.path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::ofstream(file.path, std::ios::binary) << "abc" << bytes;
    file = {file.path, "", bytes.size() + 3, {}, ""};
    table.saved.boxes[f].file_offset += 3;
  }
  const std::vector<Box> pieces = {kLeft, kWhole, kRight};
  for (const bool shorter : {false, true}) {
    if (shorter) std::filesystem::resize_file(table.files[1].path, table.files[1].size_bytes - 1);
    Meeting ranks(3);
    uint64_t read = 0;
    const auto all = table.Load(pieces, ranks, carried_);
    for (const auto& stats : all) {
      if (!shorter) {
        ASSERT_TRUE(stats.ok()) << stats.status().message();
        EXPECT_EQ(stats->blocks_verified, 0u);
        read += stats->read_bytes;
        continue;
      }
      EXPECT_FALSE(stats.ok());
    }
    if (shorter) break;
    EXPECT_EQ(read, table.files[0].size_bytes + table.files[1].size_bytes);
    table.Check(pieces);
  }
}

TEST_P(Exchange, OneRanksDamageEndsItForAllAndKeepsItsName) {
  Table table;
  FlipBit(table.files[1].path, 8 * (5 << 20));  // file 1, block 1: read by rank 2 of three
  Meeting ranks(3);
  const auto results = table.Load({kWhole, kWhole, kWhole}, ranks, carried_);
  EXPECT_EQ(results[2].status().code(), Code::kDamage);
  EXPECT_THAT(results[2].status().message(), HasSubstr(table.files[1].path + ": block 1"));
  for (const size_t r : {0, 1})
    EXPECT_THAT(results[r].status().code(), AnyOf(Code::kCancelled, Code::kUnavailable));
}

// Rank 0 of two that both want the whole table; rank 1 is what the test makes of it.
struct FirstOfTwo {
  explicit FirstOfTwo(bool carried)
      : load(std::async(std::launch::async, [this, carried] {
          const Layout layout = MakeLayout(2, table.saved.arrays, {{0, 0, 0, kWhole}, {0, 1, 0, kWhole}});
          return LoadRank(table.saved, table.files, layout, 0,
                          {{reinterpret_cast<std::byte*>(memory.data()), kWhole, {Table::kWidth, 1}, 1}},
                          ranks, carried);
        })) {}

  Table table;
  Meeting ranks{2};
  std::string memory = std::string(static_cast<size_t>(kWhole.elements()), '?');
  std::future<Result<LoadStats>> load;  // goes first
};

TEST_P(Exchange, ARankThatNeverComesIsWaitedForUntilTheBreakerBreaks) {
  FirstOfTwo first(carried_);
  EXPECT_EQ(first.load.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  first.ranks.BreakAll({Code::kUnavailable, "rank 1 is gone"});
  EXPECT_EQ(first.load.get().status().message(), "rank 1 is gone");
}

TEST(SocketExchange, RefusesAParcelThatItsOwnPlanDoesNotExpect) {
  Table table;
  Meeting ranks(2);
  const Layout theirs =
      MakeLayout(2, table.saved.arrays, {{0, 0, 0, kWhole}, {0, 1, 0, kLeft}, {0, 1, 1, kRight}});
  const Layout ours = MakeLayout(2, table.saved.arrays, {{0, 0, 0, kWhole}, {0, 1, 0, kLeft}});
  std::string zero(static_cast<size_t>(kWhole.elements()), '?'),
      one(static_cast<size_t>(kLeft.elements()), '?');
  const auto load = [&](const Layout& layout, uint32_t rank, std::vector<Destination> to) {
    return std::async(std::launch::async, [&, rank, to = std::move(to)] {
      auto stats = LoadRank(table.saved, table.files, layout, rank, to, ranks, false);
      if (!stats.ok()) ranks.AbandonRound();
      return stats;
    });
  };
  auto first = load(theirs, 0, {{reinterpret_cast<std::byte*>(zero.data()), kWhole, {Table::kWidth, 1}, 1}});
  auto second = load(ours, 1, {{reinterpret_cast<std::byte*>(one.data()), kLeft, {512, 1}, 1}});
  EXPECT_FALSE(first.get().ok());
  const Status status = second.get().status();
  EXPECT_THAT(status.code(), AnyOf(Code::kUnavailable, Code::kCancelled));
}

// A copy of one for another would leave memory unfilled.
TEST(SocketExchange, RefusesASecondCopyOfAParcel) {
  Table table;
  const Layout layout = MakeLayout(2, table.saved.arrays, {{0, 0, 0, kWhole}, {0, 1, 0, kWhole}});
  const SavedIndex index = *SavedIndex::Make(table.saved);
  const LayoutIndex wanted(layout);
  const std::vector<uint32_t> same = SameArrays(layout);
  const ExchangePlan plan = *PlanExchange({index, wanted, same}, 0);
  ASSERT_GT(plan.receipts.size(), 1U);
  const ExchangePlan::Receipt& receipt = plan.receipts[0];
  Meeting ranks(2);
  PlayedRank below(ranks, 1, " lane 0"), above(ranks, 1, " lane 1");  // lane 1 goes to lower ranks
  std::string memory(static_cast<size_t>(kWhole.elements()), '?');
  LoadOptions options = kNoWaiting;
  options.share_bytes = UINT64_MAX;  // over sockets alone
  auto load = std::async(std::launch::async, [&] {
    return LoadRank(table.saved, table.files, layout, 0,
                    {{reinterpret_cast<std::byte*>(memory.data()), kWhole, {Table::kWidth, 1}, 1}}, ranks,
                    false, options);
  });
  auto copies = std::async(std::launch::async, [&] {  // as many as there should be others
    const std::vector<std::byte> parcel(receipt.bytes);
    for (size_t copy = 0; copy < plan.receipts.size(); ++copy)
      (void)above.Send(0, {1, {receipt.file, receipt.block, receipt.reader}}, parcel);
  });
  EXPECT_THAT(load.get().status().message(), HasSubstr("a parcel came twice"));
  ranks.BreakAll({Code::kCancelled, "the test is over"});
  copies.get();
}

TEST_P(Exchange, RefusesAPlanThatDoesNotFitItsFilesOrDestinations) {
  Table table;
  const Layout layout = MakeLayout(1, table.saved.arrays, {{0, 0, 0, kWhole}});
  Meeting ranks(1);
  std::string memory(static_cast<size_t>(kWhole.elements()), '?');
  const std::vector<Destination> to = {
      {reinterpret_cast<std::byte*>(memory.data()), kWhole, {Table::kWidth, 1}, 1}};
  const auto code = [&](const std::vector<SourceFile>& files, const std::vector<Destination>& where) {
    return LoadRank(table.saved, files, layout, 0, where, ranks, carried_).status().code();
  };
  EXPECT_EQ(code({table.files[0]}, to), Code::kInternal);
  std::vector<SourceFile> shorter = table.files;
  shorter[1].size_bytes -= 1;
  EXPECT_EQ(code(shorter, to), Code::kInternal);
  EXPECT_EQ(code(table.files, {}), Code::kInternal);
  EXPECT_EQ(code(table.files, to), Code::kOk);
}

TEST(CarriedExchange, BeginsNothingUnlessAllRanksCan) {
  FirstOfTwo first(true);
  first.ranks.AbandonRound();  // rank 1 cannot
  EXPECT_EQ(first.load.get().status().code(), Code::kCancelled);
  EXPECT_EQ(first.memory, std::string(first.memory.size(), '?'));
  EXPECT_EQ(first.ranks.carriers.under_way(), 0u);
}

TEST(CarriedExchange, GivesUpWhatIsUnderWayWhenARankIsGone) {
  FirstOfTwo first(true);
  ASSERT_TRUE(first.ranks.RoundOf(1).Meet().ok());
  while (first.ranks.carriers.under_way() < 4)
    std::this_thread::yield();  // its three parcels, and one of mine
  EXPECT_EQ(first.load.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  first.ranks.BreakAll({Code::kUnavailable, "rank 1 is gone"});
  EXPECT_EQ(first.load.get().status().message(), "rank 1 is gone");
  EXPECT_LE(first.ranks.carriers.under_way(), 3u);  // what rank 0 has sent: no receive
}

}  // namespace
}  // namespace cairn
