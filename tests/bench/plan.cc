// bench_plan: how long one rank's plan takes, from the bytes of an index on.
//
//     bench_plan regular|restore|irregular|growth ROUNDS
//
// regular: 10000 arrays saved by 16384 ranks, wanted by 12288: matrices cut by rows, vectors cut likewise, matrices cut by rows over
// 2048 ranks with 8 replicas, which share the writing, and small replicated ones. The plan of a rank that loads alone.
// restore: the same, and the plan is that of a rank that loads with all others: what it reads for whom.
// irregular: one array in 1024 boxes without a rule, wanted in 1024 others: all of the plan.
// growth: both plans, and what a save has on disk besides the arrays' bytes, for more and more ranks and arrays.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "planner/exchange_plan.h"
#include "planner/save_plan.h"
#include "runtime/formats/index.h"
#include "runtime/formats/shard.h"

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

struct World {
  uint32_t saved_ranks = 16384, wanted_ranks = 12288, arrays = 10000;
  std::string Name() const {
    return std::to_string(saved_ranks) + " to " + std::to_string(wanted_ranks) + " ranks, " +
           std::to_string(arrays) + " arrays";
  }
};

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

struct OnDisk {
  std::string index;
  uint64_t headers_bytes = 0;  // of all files
};

Result<OnDisk> Save(const World& world) {
  Layout layout;
  layout.world_size = world.saved_ranks;
  layout.grids = Rules(world.saved_ranks, world.arrays);
  for (uint32_t a = 0; a < world.arrays; ++a) {
    layout.arrays.push_back({"optim.state.model.layers." + std::to_string(a / 4) + ".attention.wq.weight." +
                                 std::to_string(a % 4),
                             a % 2 == 0 ? DType::kF32 : DType::kBF16, false,
                             Grid(layout.grids, a % 4).shape()});
  }
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(layout));
  // Headers differ by a few digits from rank to rank: one in the middle stands for all.
  std::vector<ShardTensor> tensors;
  for (const WriteBox& box : plan.BoxesOf(world.saved_ranks / 2))
    tensors.push_back({layout.arrays[box.array].name, layout.arrays[box.array].dtype, box.box});
  CAIRN_ASSIGN_OR_RETURN(const ShardLayout shard, LayOutShard(tensors));
  Index index;
  index.world_size = world.saved_ranks;
  for (uint32_t rank = 0; rank < world.saved_ranks; ++rank) {
    const std::vector<uint64_t> files = plan.FilesOf(rank).data_bytes;
    index.files.push_back({rank + 1, (uint64_t{1} << 21) + files.at(0), {}});
  }
  index.saved = {layout.arrays,       {}, layout.grids, world.saved_ranks, plan.min_split_bytes(),
                 FilesOf(index.files)};
  CAIRN_ASSIGN_OR_RETURN(std::string bytes, EncodeIndex(index));
  return OnDisk{std::move(bytes), shard.header.size() * index.files.size()};
}

// A rank that loads alone: which ranges of which files it reads.
Result<size_t> PlanAlone(const std::string& bytes, const Layout& layout, uint32_t rank) {
  CAIRN_ASSIGN_OR_RETURN(const Index index, DecodeIndex(bytes));
  std::vector<WantedBox> wanted;
  for (uint32_t a = 0; a < index.saved.arrays.size(); ++a) {
    const Grid grid(layout.grids, layout.grids.rule_of[a]);
    wanted.push_back({a, grid.BoxAt(*grid.DigitsOf(rank))});
  }
  CAIRN_ASSIGN_OR_RETURN(const LoadPlan plan, PlanLoad(index.saved, wanted));
  return plan.ranges.size();
}

// A rank of a restore: which blocks it reads, what it hands to whom, and what it gets.
Result<size_t> PlanTogether(const std::string& bytes, const Layout& layout, uint32_t rank) {
  CAIRN_ASSIGN_OR_RETURN(const Index index, DecodeIndex(bytes));
  CAIRN_ASSIGN_OR_RETURN(const SavedIndex saved, SavedIndex::Make(index.saved));
  const LayoutIndex wanted(layout);
  std::vector<uint32_t> same(index.saved.arrays.size());
  std::iota(same.begin(), same.end(), 0u);
  CAIRN_ASSIGN_OR_RETURN(const ExchangePlan plan, PlanExchange({saved, wanted, same}, rank));
  return plan.reads.size() + plan.receipts.size();
}

using PlanOneRank = Result<size_t>(const std::string& index, const Layout& layout, uint32_t rank);

Result<double> Seconds(PlanOneRank plan_rank, const std::string& index, const Layout& layout, int round) {
  const uint32_t rank = 7919 * static_cast<uint32_t>(round + 1) % layout.world_size;
  const auto start = Clock::now();
  const auto planned = plan_rank(index, layout, rank);
  const std::chrono::duration<double> took = Clock::now() - start;
  if (!planned.ok()) return planned.status();
  if (*planned == 0) return Status(Code::kInternal, "rank " + std::to_string(rank) + " loads nothing");
  return took.count();
}

// The arrays are known to all: only their shares of them are of interest.
Layout Wanted(const World& world) {
  return {
      world.wanted_ranks, std::vector<ArraySpec>(world.arrays), {}, Rules(world.wanted_ranks, world.arrays)};
}

int Regular(PlanOneRank plan_rank, int rounds) {
  const World world;
  const auto saved = Save(world);
  if (!saved.ok()) return Fail(saved.status());
  const Layout wanted = Wanted(world);
  for (int round = 0; round < rounds; ++round) {
    const auto seconds = Seconds(plan_rank, saved->index, wanted, round);
    if (!seconds.ok()) return Fail(seconds.status());
    std::printf("{\"workload\": \"%s\", \"ours_s\": %.9f, \"index_bytes\": %zu}\n", world.Name().c_str(),
                *seconds, saved->index.size());
  }
  return 0;
}

int Growth(int rounds) {
  std::vector<World> worlds;
  for (const uint32_t ranks : {32, 256, 2048, 16384}) worlds.push_back({ranks, ranks / 4 * 3, 10000});
  for (const uint32_t arrays : {100, 1000, 100000}) worlds.push_back({2048, 1536, arrays});
  for (const World& world : worlds) {
    const auto saved = Save(world);
    if (!saved.ok()) return Fail(saved.status());
    const Layout wanted = Wanted(world);
    std::printf("{\"workload\": \"%s\", \"index_bytes\": %zu, \"files\": %u, \"headers_bytes\": %llu",
                world.Name().c_str(), saved->index.size(), world.saved_ranks,
                static_cast<unsigned long long>(saved->headers_bytes));
    for (const auto& [name, plan_rank] :
         {std::pair("alone_s", &PlanAlone), std::pair("together_s", &PlanTogether)}) {
      std::printf(", \"%s\": [", name);
      for (int round = 0; round < rounds; ++round) {
        const auto seconds = Seconds(*plan_rank, saved->index, wanted, round);
        if (!seconds.ok()) return Fail(seconds.status());
        std::printf("%s%.9f", round > 0 ? ", " : "", *seconds);
      }
      std::printf("]");
    }
    std::printf("}\n");
    std::fflush(stdout);
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
  if (rounds > 0 && kind == "regular") return cairn::Regular(cairn::PlanAlone, rounds);
  if (rounds > 0 && kind == "restore") return cairn::Regular(cairn::PlanTogether, rounds);
  if (rounds > 0 && kind == "growth") return cairn::Growth(rounds);
  if (rounds > 0 && kind == "irregular") return cairn::Irregular(rounds);
  std::fprintf(stderr, "usage: bench_plan regular|restore|irregular|growth ROUNDS\n");
  return 2;
}
