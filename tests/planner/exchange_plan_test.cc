// The exchange's properties, against an oracle that moves single bytes and shares no code with the planner.
#include "planner/exchange_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "planner/layout_builder.h"
#include "tests/planner/oracle.h"
#include "tests/planner/random_layout.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct World {
  World(const SavedLayout& saved_layout, const Layout& wanted_layout)
      : saved(*SavedIndex::Make(saved_layout)), wanted(wanted_layout), world_size(wanted_layout.world_size) {
    for (uint32_t a = 0; a < wanted_layout.arrays.size(); ++a) saved_array.push_back(a);
  }

  ExchangePlan PlanOf(uint32_t rank) const {
    auto plan = PlanExchange({saved, wanted, saved_array, block_bytes, readers}, rank);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan.ok() ? *std::move(plan) : ExchangePlan();
  }
  std::vector<ExchangePlan> Plans() const {
    std::vector<ExchangePlan> plans;
    for (uint32_t rank = 0; rank < world_size; ++rank) plans.push_back(PlanOf(rank));
    return plans;
  }

  SavedIndex saved;
  LayoutIndex wanted;
  uint32_t world_size;
  std::vector<uint32_t> saved_array;
  uint64_t block_bytes = 4 << 20;
  std::vector<std::vector<uint32_t>> readers;
};

// Where each byte of a region's elements lies in its file, in the order of its stream.
std::vector<uint64_t> Offsets(const SavedFiles& saved, const FileRegion& region) {
  const auto element_bytes = static_cast<uint64_t>(DTypeBytes(saved.layout.arrays[region.array].dtype));
  for (const SavedBox& box : saved.boxes) {
    if (box.array != region.array || box.file != region.file || !box.box.Contains(region.box)) continue;
    std::vector<uint64_t> offsets;
    ForEachElement(region.box, [&](const Dims& at) {
      Dims inside = at;
      for (int d = 0; d < at.size(); ++d) inside[d] -= box.box.offset[d];
      for (uint64_t i = 0; i < element_bytes; ++i)
        offsets.push_back(box.file_offset +
                          static_cast<uint64_t>(FlatIndex(box.box.extent, inside)) * element_bytes + i);
    });
    if (offsets.front() == region.offset) return offsets;
  }
  ADD_FAILURE() << "a region that lies in no saved box";
  return {};
}

// Carries the plans of all ranks out and compares every byte of every piece.
class Execution {
 public:
  Execution(const SavedFiles& saved, const World& world, const std::vector<ExchangePlan>& plans)
      : saved_(saved), world_(world), plans_(plans), memory_(plans.size()), arrived_(plans.size()) {
    for (const ExchangePlan& plan : plans) {
      offsets_.emplace_back();
      for (const FileRegion& region : plan.regions) offsets_.back().push_back(Offsets(saved, region));
    }
    for (uint32_t rank = 0; rank < plans.size(); ++rank) {
      for (const ExchangePlan::Read& read : plans[rank].reads) Carry(rank, read);
    }
    while (!messages_.empty()) {
      Message message = std::move(messages_.front());
      messages_.pop_front();
      Take(message);
    }
    for (uint32_t rank = 0; rank < plans.size(); ++rank) Compare(rank);
    uint64_t needed = 0;
    for (const ExchangePlan& plan : plans) needed += plan.needed_bytes;
    EXPECT_EQ(needed, wanted_.size());
  }

 private:
  struct Message {
    uint32_t from, to, reader, file;
    uint64_t block;
    std::string payload;
  };

  void Carry(uint32_t rank, const ExchangePlan::Read& read) {
    EXPECT_TRUE(read_.insert({read.file, read.block}).second) << "a block is read twice";
    if (read.file < world_.readers.size() && !world_.readers[read.file].empty()) {
      EXPECT_THAT(world_.readers[read.file], ::testing::Contains(rank));
    }
    EXPECT_TRUE(!read.own.empty() || !read.handovers.empty()) << "a block that nobody wants is read";
    Fill(rank, read.own, read.file, read.block, Parcel(rank, read.own, read.file, read.block));
    for (const ExchangePlan::Handover& handover : read.handovers) {
      const std::string payload = Parcel(rank, handover.regions, read.file, read.block);
      EXPECT_EQ(payload.size(), handover.bytes);
      EXPECT_EQ(handover.to.size(), 1u);
      for (const uint32_t to : handover.to)
        messages_.push_back({rank, to, rank, read.file, read.block, payload});
    }
  }

  void Take(const Message& message) {
    ASSERT_LT(message.to, plans_.size());
    const auto& receipts = plans_[message.to].receipts;
    const auto receipt = std::find_if(receipts.begin(), receipts.end(), [&](const auto& r) {
      return r.file == message.file && r.block == message.block;
    });
    ASSERT_NE(receipt, receipts.end()) << "rank " << message.to << " does not expect it";
    EXPECT_EQ(receipt->reader, message.reader);
    EXPECT_EQ(receipt->from, message.from);
    EXPECT_EQ(receipt->bytes, message.payload.size());
    EXPECT_TRUE(arrived_[message.to].insert({message.file, message.block}).second) << "it comes twice";
    // Up, but for one drop from above the reader to below it.
    if (message.to < message.from) {
      EXPECT_GE(message.from, message.reader);
      EXPECT_LT(message.to, message.reader);
    }
    Fill(message.to, receipt->regions, message.file, message.block, message.payload);
    EXPECT_LE(receipt->to.size(), 3u);
    for (const uint32_t to : receipt->to)
      messages_.push_back({message.to, to, message.reader, message.file, message.block, message.payload});
  }

  bool InBlock(uint64_t offset, uint64_t block) const { return offset / world_.block_bytes == block; }

  std::string Parcel(uint32_t rank, const std::vector<uint32_t>& regions, uint32_t file, uint64_t block) {
    std::string payload;
    for (const uint32_t region : regions) {
      EXPECT_EQ(plans_[rank].regions[region].file, file);
      for (const uint64_t offset : offsets_[rank][region]) {
        if (InBlock(offset, block)) payload += saved_.files[file].at(offset);
      }
    }
    return payload;
  }

  void Fill(uint32_t rank, const std::vector<uint32_t>& regions, uint32_t file, uint64_t block,
            const std::string& payload) {
    size_t at = 0;
    for (const uint32_t number : regions) {
      const FileRegion& region = plans_[rank].regions[number];
      EXPECT_EQ(region.file, file);
      EXPECT_FALSE(plans_[rank].pieces_of[number].empty()) << "it is told of what it does not want";
      const auto element_bytes = static_cast<size_t>(DTypeBytes(saved_.layout.arrays[region.array].dtype));
      std::vector<Dims> elements;
      ForEachElement(region.box, [&](const Dims& element) { elements.push_back(element); });
      for (size_t i = 0; i < offsets_[rank][number].size(); ++i) {
        if (!InBlock(offsets_[rank][number][i], block)) continue;
        ASSERT_LT(at, payload.size());
        for (const uint32_t piece : plans_[rank].pieces_of[number]) {
          auto& bytes = memory_[rank][{piece, elements[i / element_bytes]}];
          bytes.resize(element_bytes, '\0');
          bytes[i % element_bytes] = payload[at];
          EXPECT_TRUE(filled_.insert({rank, piece, elements[i / element_bytes], i % element_bytes}).second)
              << "a byte of a piece is filled twice";
        }
        ++at;
      }
    }
    EXPECT_EQ(at, payload.size());
  }

  void Compare(uint32_t rank) {
    EXPECT_EQ(arrived_[rank].size(), plans_[rank].receipts.size()) << "rank " << rank << " waits for ever";
    for (uint32_t p = 0; p < plans_[rank].pieces.size(); ++p) {
      const Piece& piece = plans_[rank].pieces[p];
      const uint32_t array = world_.saved_array[piece.array];
      ForEachElement(piece.box, [&](const Dims& at) {
        const std::string expected = ElementBytes(saved_.layout.arrays, array, at);
        EXPECT_EQ((memory_[rank][{p, at}]), expected) << "rank " << rank << " piece " << p;
        for (size_t i = 0; i < expected.size(); ++i) wanted_.insert({array, at, i});
      });
    }
  }

  const SavedFiles& saved_;
  const World& world_;
  const std::vector<ExchangePlan>& plans_;
  std::vector<std::vector<std::vector<uint64_t>>> offsets_;  // by rank, region
  std::vector<std::map<std::pair<uint32_t, Dims>, std::string>> memory_;
  std::set<std::tuple<uint32_t, uint32_t, Dims, size_t>> filled_;
  std::set<std::tuple<uint32_t, Dims, size_t>> wanted_;  // by anybody
  std::vector<std::set<std::pair<uint32_t, uint64_t>>> arrived_;
  std::set<std::pair<uint32_t, uint64_t>> read_;
  std::deque<Message> messages_;
};

TEST(ExchangePlan, BringsEveryByteOfAnyLayoutIntoAnyOtherAndReadsEachBlockOnce) {
  for (uint64_t seed = 1; seed <= Cases(150); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    std::vector<ArraySpec> arrays = RandomArrays(random);
    const Layout before =
        WithoutEmptyPieces(RandomLayout(random, arrays, static_cast<uint32_t>(Uniform(random, 1, 9))));
    const Result<Layout> ruled = FindRules(before);
    ASSERT_TRUE(ruled.ok()) << ruled.status().message();
    const Result<SavePlan> save =
        PlanSave(*ruled, {.min_split_bytes = static_cast<uint64_t>(Uniform(random, 0, 64))});
    ASSERT_TRUE(save.ok());
    const SavedFiles saved =
        Uniform(random, 0, 1) == 0 ? Save(random, before, *save) : SaveByRule(random, before, *ruled, *save);

    // Some of the arrays, in another order.
    std::vector<uint32_t> chosen;
    for (uint32_t a = 0; a < arrays.size(); ++a) {
      if (Uniform(random, 0, 4) > 0)
        chosen.insert(chosen.begin() + Uniform(random, 0, static_cast<int64_t>(chosen.size())), a);
    }
    std::vector<ArraySpec> wanted_arrays;
    for (const uint32_t a : chosen) wanted_arrays.push_back(arrays[a]);
    Layout after = RandomLayout(random, wanted_arrays, static_cast<uint32_t>(Uniform(random, 1, 9)));
    if (Uniform(random, 0, 1) == 0) {
      Result<Layout> rules = FindRules(after);
      ASSERT_TRUE(rules.ok());
      after = *std::move(rules);
    }

    World world(saved.layout, after);
    world.saved_array = chosen;
    world.block_bytes = static_cast<uint64_t>(Uniform(random, 1, 80));
    if (Uniform(random, 0, 1) == 1) {
      for (size_t f = 0; f < saved.files.size(); ++f) {
        world.readers.emplace_back();
        for (uint32_t rank = 0; rank < after.world_size; ++rank) {
          if (Uniform(random, 0, 2) == 0) world.readers.back().push_back(rank);
        }
      }
    }
    Execution(saved, world, world.Plans());
    if (HasFailure()) return;
  }
}

// Arrays with one rule that stand together in a file, and yet have elements of other sizes.
TEST(ExchangePlan, TellsArraysThatAreAlikeApartByTheBytesOfTheirElements) {
  const std::vector<ArraySpec> arrays = {{"a", DType::kU8, false, {6, 4}},
                                         {"b", DType::kF6E2M3, false, {6, 4}},
                                         {"c", DType::kF4, false, {6, 4}},
                                         {"d", DType::kF6E3M2, false, {6, 4}}};
  std::vector<Piece> thirds, halves;
  for (uint32_t a = 0; a < arrays.size(); ++a) {
    for (uint32_t rank = 0; rank < 3; ++rank) thirds.push_back({a, rank, 0, Box{{2 * rank, 0}, {2, 4}}});
    for (uint32_t rank = 0; rank < 2; ++rank) halves.push_back({a, rank, 0, Box{{0, 2 * rank}, {6, 2}}});
  }
  const Layout before = MakeLayout(3, arrays, thirds);
  const Layout ruled = *FindRules(before), after = *FindRules(MakeLayout(2, arrays, halves));
  Random random(1);
  const SavedFiles saved = SaveByRule(random, before, ruled, *PlanSave(ruled, {.min_split_bytes = 1}));
  const World world(saved.layout, after);
  Execution(saved, world, world.Plans());
}

// Of three replicas the middle one writes as many rows of the end of one array as of the beginning of the next.
TEST(ExchangePlan, TellsTheEndOfAPieceFromTheBeginningOfTheNext) {
  const std::vector<ArraySpec> arrays = {{"a", DType::kU8, false, {6, 4}}, {"b", DType::kU8, false, {6, 4}}};
  std::vector<Piece> replicas, halves;
  for (uint32_t a = 0; a < 2; ++a) {
    for (uint32_t rank = 0; rank < 3; ++rank) replicas.push_back({a, rank, 0, Box::Whole(arrays[a].shape)});
    for (uint32_t rank = 0; rank < 2; ++rank) halves.push_back({a, rank, 0, Box{{3 * rank, 0}, {3, 4}}});
  }
  const Layout before = MakeLayout(3, arrays, replicas);
  const Layout ruled = *FindRules(before), after = *FindRules(MakeLayout(2, arrays, halves));
  const SavePlan plan = *PlanSave(ruled, {.min_split_bytes = 1});
  ASSERT_EQ(plan.BoxesOf(1).size(), 2u);
  EXPECT_EQ(plan.BoxesOf(1)[0].box, (Box{{4, 0}, {2, 4}}));
  EXPECT_EQ(plan.BoxesOf(1)[1].box, (Box{{0, 0}, {2, 4}}));
  Random random(1);
  const SavedFiles saved = SaveByRule(random, before, ruled, plan);
  const World world(saved.layout, after);
  Execution(saved, world, world.Plans());
}

// One array of rows of 1 KiB, cut by rows among the ranks.
std::vector<ArraySpec> Rows(int64_t rows) { return {{"w", DType::kU8, false, {rows, 1024}}}; }

std::vector<Piece> Cut(int64_t rows, uint32_t ranks, uint32_t copies = 1) {
  std::vector<Piece> pieces;
  for (uint32_t copy = 0; copy < copies; ++copy) {
    for (uint32_t r = 0; r < ranks; ++r) {
      const int64_t begin = rows * r / ranks, end = rows * (r + 1) / ranks;
      pieces.push_back({0, copy * ranks + r, 0, Box{{begin, 0}, {end - begin, 1024}}});
    }
  }
  return pieces;
}

// Saved by `ranks` ranks, each into a file of its own from byte 4096 on.
SavedLayout SavedRows(int64_t rows, uint32_t ranks) {
  SavedLayout saved{Rows(rows), {}};
  for (const Piece& piece : Cut(rows, ranks)) saved.boxes.push_back({0, piece.rank, 4096, piece.box});
  return saved;
}

uint64_t BlocksRead(const ExchangePlan& plan) { return plan.reads.size(); }

TEST(ExchangePlan, SharesTheReadingOfReplicasEqually) {
  const int64_t rows = 100 << 10;  // 100 MiB: 26 blocks
  const SavedLayout saved = SavedRows(rows, 1);
  for (const uint32_t ranks : {2u, 5u, 8u}) {
    const Layout replicas = MakeLayout(ranks, Rows(rows), Cut(rows, 1, ranks));
    const World world(saved, replicas);
    uint64_t blocks = 0, needed = 0;
    for (const ExchangePlan& plan : world.Plans()) {
      EXPECT_GE(BlocksRead(plan), 26 / ranks);
      EXPECT_LE(BlocksRead(plan), 26 / ranks + 1);
      EXPECT_EQ(BlocksRead(plan) + plan.receipts.size(), 26u);
      blocks += BlocksRead(plan);
      needed += plan.needed_bytes;
    }
    EXPECT_EQ(blocks, 26u);
    EXPECT_EQ(needed, uint64_t{100} << 20);
  }
}

TEST(ExchangePlan, HandsNothingOnWhereEachRankWantsWhatNoOtherWants) {
  const int64_t rows = 64 << 10;
  const SavedLayout saved = SavedRows(rows, 4);
  const Layout same = MakeLayout(4, Rows(rows), Cut(rows, 4));
  for (const ExchangePlan& plan : World(saved, same).Plans()) {
    EXPECT_EQ(BlocksRead(plan), 5u);  // 16 MiB from byte 4096 on
    EXPECT_THAT(plan.receipts, IsEmpty());
    for (const auto& read : plan.reads) EXPECT_THAT(read.handovers, IsEmpty());
  }
}

TEST(ExchangePlan, ReadsAtMostFivePercentMoreThanIsNeededWhenRanksChange) {
  const int64_t rows = 1 << 20;  // 1 GiB
  for (const auto& [before, after] : {std::pair(8u, 6u), {4u, 8u}, {6u, 6u}}) {
    const SavedLayout saved = SavedRows(rows, before);
    const Layout layout = MakeLayout(after, Rows(rows), Cut(rows, after));
    uint64_t blocks = 0, most = 0;
    for (const ExchangePlan& plan : World(saved, layout).Plans()) {
      blocks += BlocksRead(plan);
      most = std::max(most, BlocksRead(plan));
    }
    EXPECT_LE(blocks * 4, 1024 * 105 / 100) << before << " to " << after;
    EXPECT_LE(most, blocks / after + 3) << before << " to " << after;
  }
}

TEST(ExchangePlan, NeverSendsOneParcelToMoreThanThreeAndReachesAllInFewSteps) {
  const uint32_t ranks = 1000;
  const SavedLayout saved = SavedRows(16, 1);  // one block
  const Layout replicas = MakeLayout(ranks, Rows(16), Cut(16, 1, ranks));
  World world(saved, replicas);
  world.block_bytes = 64 << 10;
  std::map<uint32_t, std::vector<uint32_t>> to;
  std::map<uint32_t, uint32_t> from;
  uint32_t reader = ranks;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const ExchangePlan plan = world.PlanOf(rank);
    for (const auto& read : plan.reads) {
      reader = rank;
      to[rank] = read.handovers.at(0).to;
    }
    for (const auto& receipt : plan.receipts) {
      to[rank] = receipt.to;
      from[rank] = receipt.from;
    }
  }
  ASSERT_LT(reader, ranks);
  std::map<uint32_t, int> steps{{reader, 0}};
  std::deque<uint32_t> queue{reader};
  while (!queue.empty()) {
    const uint32_t rank = queue.front();
    queue.pop_front();
    EXPECT_LE(to[rank].size(), 3u);
    for (const uint32_t next : to[rank]) {
      EXPECT_TRUE(steps.emplace(next, steps[rank] + 1).second) << next << " gets it twice";
      EXPECT_EQ(from[next], rank);
      queue.push_back(next);
    }
  }
  EXPECT_EQ(steps.size(), ranks);
  int most = 0;
  for (const auto& [rank, n] : steps) most = std::max(most, n);
  EXPECT_LE(most, 1 + 4 + 63);  // the first, the heap of 16 chains, a chain
}

TEST(ExchangePlan, LeavesABlockToTheRankThatWantsMostOfIt) {
  const int64_t rows = 64 << 10;
  const Layout halves = MakeLayout(2, Rows(rows), Cut(rows, 2));
  const std::vector<ExchangePlan> plans = World(SavedRows(rows, 1), halves).Plans();
  EXPECT_EQ(BlocksRead(plans[0]), 8u);  // 32 MiB from byte 4096 on, but for the last 4 KiB
  EXPECT_EQ(BlocksRead(plans[1]), 9u);
  ASSERT_EQ(plans[0].receipts.size(), 1u);
  EXPECT_EQ(plans[0].receipts[0].block, 8u);
  EXPECT_EQ(plans[0].receipts[0].bytes, 4096u);
  EXPECT_THAT(plans[1].receipts, IsEmpty());
}

TEST(ExchangePlan, ReadsAFileOfOneNodeThereAlone) {
  const int64_t rows = 32 << 10;
  const SavedLayout saved = SavedRows(rows, 2);
  const Layout halves = MakeLayout(4, Rows(rows), Cut(rows, 2));  // ranks 2 and 3 want nothing
  World world(saved, halves);
  world.readers = {{2, 3}, {}};
  const std::vector<ExchangePlan> plans = world.Plans();
  EXPECT_EQ(BlocksRead(plans[0]), 0u);
  EXPECT_EQ(plans[0].receipts.size(), 5u);
  EXPECT_EQ(BlocksRead(plans[1]), 5u);
  EXPECT_EQ(BlocksRead(plans[2]) + BlocksRead(plans[3]), 5u);
  EXPECT_EQ(BlocksRead(plans[2]), 3u);
  EXPECT_THAT(plans[2].reads.at(0).own, IsEmpty());
  EXPECT_THAT(plans[2].reads.at(0).handovers.at(0).to, ElementsAre(0));
}

// A state of many arrays with rules, as a model has them: matrices and vectors cut by rows, matrices cut by rows with 8 replicas that share the
// writing, and vectors that all ranks have, which many ranks write.
Layout RegularLayout(uint32_t ranks, uint32_t arrays) {
  constexpr int64_t kRows = 768;
  Layout layout{ranks, {}, {}};
  const auto even = [](uint64_t parts, uint64_t length) {
    return *Cuts::FromRuns(std::vector<Cuts::Run>{{parts, length}});
  };
  const uint32_t shards = ranks / 8;
  layout.grids.cuts = {even(ranks, kRows / ranks), even(1, 16), even(shards, kRows / shards), even(1, 4096)};
  layout.grids.rules = {{0, {{ranks, 1, 1, 0}}, {0, 1}},
                        {0, {{ranks, 1, 1, 0}}, {0}},
                        {0, {{8, shards, 0, -1}, {shards, 1, 1, 0}}, {2, 1}},
                        {0, {{ranks, 1, 0, -1}}, {3}}};
  for (uint32_t a = 0; a < arrays; ++a) {
    layout.grids.rule_of.push_back(a % 4);
    layout.arrays.push_back({"a" + std::to_string(a), a % 2 == 0 ? DType::kF32 : DType::kBF16, false,
                             Grid(layout.grids, a % 4).shape()});
  }
  return layout;
}

TEST(ExchangePlan, CostsARankInProportionToTheArraysHoweverManyFilesTheyFill) {
  // 128 KiB a writer: vectors that all have are in one file for 64 arrays.
  const auto looks_per_array = [](uint32_t arrays) {
    const Layout before = RegularLayout(256, arrays), after = RegularLayout(192, arrays);
    const SavePlan plan = *PlanSave(before, {.min_split_bytes = 128 << 10});
    SavedLayout saved{before.arrays, {}, before.grids, before.world_size, plan.min_split_bytes()};
    for (uint32_t rank = 0; rank < before.world_size; ++rank) {
      for (const uint64_t bytes : plan.FilesOf(rank).data_bytes)
        saved.files.push_back({rank + 1, bytes + 64});
    }
    World world(saved, after);
    world.block_bytes = 64 << 10;
    return static_cast<double>(world.PlanOf(100).looks) / arrays;
  };
  const double few = looks_per_array(512);  // 8 files of what all have
  EXPECT_LT(few, 10);
  EXPECT_LT(looks_per_array(8192),
            2 * few);  // 128 of them: that many times all boxes of a file would be 16 times as much
}

TEST(ExchangePlan, CallsAHoleAndBoxesThatOverlapInAFileDamage) {
  SavedLayout saved = SavedRows(64, 2);
  const Layout whole = MakeLayout(1, Rows(64), Cut(64, 1));
  saved.boxes[1].file = 0;
  World overlapping(saved, whole);
  auto plan = PlanExchange({overlapping.saved, overlapping.wanted, overlapping.saved_array}, 0);
  EXPECT_EQ(plan.status().code(), Code::kDamage);
  EXPECT_THAT(plan.status().message(), ::testing::HasSubstr("overlap in file"));
  saved.boxes.pop_back();
  World holed(saved, whole);
  plan = PlanExchange({holed.saved, holed.wanted, holed.saved_array}, 0);
  EXPECT_EQ(plan.status().code(), Code::kDamage);
  EXPECT_THAT(plan.status().message(), ::testing::HasSubstr("no saved box holds"));
}

}  // namespace
}  // namespace cairn
