// bench_plan: how long one rank's load plan takes, from the bytes of an index on.
//
//     bench_plan regular|irregular ROUNDS
//
// regular: 10000 arrays saved by 16384 ranks, wanted by 12288: matrices cut by rows, vectors cut likewise, matrices cut by rows over
// 2048 ranks with 8 replicas, which share the writing, and small replicated ones.
// irregular: one array in 1024 boxes without a rule, wanted in 1024 others: all of the plan.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "planner/exchange_plan.h"
#include "planner/save_plan.h"
#include "runtime/formats/index.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

int Fail(const Status& status) {
  std::fprintf(stderr, "bench_plan: %s\n", status.message().c_str());
  return 2;
}

Cuts Even(uint64_t parts, uint64_t length) {
  return *Cuts::FromRuns(std::vector<Cuts::Run>{{parts, length}});
}

// Rows for 16384 = 2^14 and 12288 = 3 * 2^12 ranks alike.
constexpr int64_t kRows = 3 << 14;

GridTable Rules(uint32_t ranks, uint32_t arrays) {
  GridTable grids;
  const uint32_t shards = ranks / 8;
  grids.cuts = {Even(ranks, kRows / ranks), Even(1, 1024), Even(shards, kRows / shards), Even(1, 4096)};
  grids.rules = {{0, {{ranks, 1, 1, 0}}, {0, 1}},
                 {0, {{ranks, 1, 1, 0}}, {0}},
                 {0, {{8, shards, 0, -1}, {shards, 1, 1, 0}}, {2, 3}},
                 {0, {{ranks, 1, 0, -1}}, {3}}};
  for (uint32_t a = 0; a < arrays; ++a) grids.rule_of.push_back(a % 4);
  return grids;
}

Result<std::string> SavedIndexBytes() {
  constexpr uint32_t kRanks = 16384, kArrays = 10000;
  Layout layout;
  layout.world_size = kRanks;
  layout.grids = Rules(kRanks, kArrays);
  for (uint32_t a = 0; a < kArrays; ++a) {
    layout.arrays.push_back({"optim.state.model.layers." + std::to_string(a / 4) + ".attention.wq.weight." +
                                 std::to_string(a % 4),
                             a % 2 == 0 ? DType::kF32 : DType::kBF16, false,
                             Grid(layout.grids, a % 4).shape()});
  }
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(layout));
  Index index;
  index.world_size = kRanks;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    const std::vector<uint64_t> files = plan.FilesOf(rank).data_bytes;
    index.files.push_back({rank + 1, (uint64_t{1} << 21) + files.at(0), {}});
  }
  index.saved = {layout.arrays, {}, layout.grids, kRanks, plan.min_split_bytes(), FilesOf(index.files)};
  return EncodeIndex(index);
}

Result<size_t> PlanOneRank(const std::string& bytes, const GridTable& wanted_grids, uint32_t rank) {
  CAIRN_ASSIGN_OR_RETURN(const Index index, DecodeIndex(bytes));
  std::vector<WantedBox> wanted;
  for (uint32_t a = 0; a < index.saved.arrays.size(); ++a) {
    const Grid grid(wanted_grids, wanted_grids.rule_of[a]);
    wanted.push_back({a, grid.BoxAt(*grid.DigitsOf(rank))});
  }
  CAIRN_ASSIGN_OR_RETURN(const LoadPlan plan, PlanLoad(index.saved, wanted));
  return plan.ranges.size();
}

// What a rank of a restore computes: which blocks it reads, and what it hands to whom.
Result<size_t> PlanOneShare(const std::string& bytes, const GridTable& wanted_grids, uint32_t ranks,
                            uint32_t rank) {
  CAIRN_ASSIGN_OR_RETURN(const Index index, DecodeIndex(bytes));
  CAIRN_ASSIGN_OR_RETURN(const SavedIndex saved, SavedIndex::Make(index.saved));
  const Layout layout{ranks, index.saved.arrays, {}, wanted_grids};
  const LayoutIndex wanted(layout);
  std::vector<uint32_t> same(index.saved.arrays.size());
  std::iota(same.begin(), same.end(), 0u);
  CAIRN_ASSIGN_OR_RETURN(const ExchangePlan plan, PlanExchange({saved, wanted, same}, rank));
  return plan.reads.size();
}

int Regular(int rounds) {
  const auto bytes = SavedIndexBytes();
  if (!bytes.ok()) return Fail(bytes.status());
  const GridTable wanted = Rules(12288, 10000);
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    const auto ranges = PlanOneRank(*bytes, wanted, 7919 * static_cast<uint32_t>(round + 1) % 12288);
    const std::chrono::duration<double> took = Clock::now() - start;
    if (!ranges.ok()) return Fail(ranges.status());
    std::printf(
        "{\"workload\": \"16384 to 12288 ranks, 10000 arrays\", \"ours_s\": %.9f, \"index_bytes\": %zu, "
        "\"ranges\": %zu}\n",
        took.count(), bytes->size(), *ranges);
  }
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    const auto ranges = PlanOneShare(*bytes, wanted, 12288, 7919 * static_cast<uint32_t>(round + 1) % 12288);
    const std::chrono::duration<double> took = Clock::now() - start;
    if (!ranges.ok()) return Fail(ranges.status());
    std::printf(
        "{\"workload\": \"16384 to 12288 ranks, 10000 arrays, shared\", \"ours_s\": %.9f, \"index_bytes\": "
        "%zu, "
        "\"ranges\": %zu}\n",
        took.count(), bytes->size(), *ranges);
  }
  return 0;
}

// Cuts a box in two again and again, at random.
std::vector<Box> CutUp(std::mt19937_64& random, const Box& whole, size_t count) {
  std::vector<Box> boxes = {whole};
  for (size_t next = 0; boxes.size() < count; next = (next + 1) % boxes.size()) {
    const int d = static_cast<int>(random() % static_cast<uint64_t>(whole.rank()));
    const int64_t extent = boxes[next].extent[d];
    if (extent < 2) continue;
    Box high = boxes[next];
    const int64_t low = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(extent - 1));
    boxes[next].extent[d] = low;
    high.offset[d] += low;
    high.extent[d] -= low;
    boxes.push_back(high);
  }
  return boxes;
}

int Irregular(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    std::mt19937_64 random(static_cast<uint64_t>(round));
    SavedLayout saved;
    saved.arrays = {{"field", DType::kF64, false, {512, 512, 512}}};
    const Box whole = Box::Whole(saved.arrays[0].shape);
    for (const Box& box : CutUp(random, whole, 1024))
      saved.boxes.push_back({0, static_cast<uint32_t>(saved.boxes.size()), 4096, box});
    const std::vector<Box> wanted = CutUp(random, whole, 1024);
    size_t parts = 0;
    const auto start = Clock::now();
    const auto index = SavedIndex::Make(saved);
    if (!index.ok()) return Fail(index.status());
    for (const Box& box : wanted) {
      const auto found = index->BoxesIn(0, box);
      if (!found.ok()) return Fail(found.status());
      parts += found->size();
    }
    const std::chrono::duration<double> took = Clock::now() - start;
    std::printf("{\"workload\": \"1024 boxes to 1024 others\", \"ours_s\": %.9f, \"parts\": %zu}\n",
                took.count(), parts);
  }
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  const std::string kind = argc == 3 ? argv[1] : "";
  const int rounds = argc == 3 ? std::atoi(argv[2]) : 0;
  if (rounds > 0 && kind == "regular") return cairn::Regular(rounds);
  if (rounds > 0 && kind == "irregular") return cairn::Irregular(rounds);
  std::fprintf(stderr, "usage: bench_plan regular|irregular ROUNDS\n");
  return 2;
}
