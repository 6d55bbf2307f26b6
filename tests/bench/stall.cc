// bench_stall: the time that a snapshot stops the program, against one memcpy of the same bytes into memory that exists.
//
//     bench_stall MIB ROUNDS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/staging/drain.h"
#include "runtime/staging/memory_slot.h"
#include "runtime/staging/snapshot.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

// One rank's arrays: `count` boxes of this extent, each in an allocation that is larger by `halo` on all sides.
struct Workload {
  const char* name;
  int64_t count;
  Dims extent;
  int64_t halo;
};

template <typename Body>
double Seconds(Body body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int Fail(const Status& status) {
  std::fprintf(stderr, "bench_stall: %s\n", status.message().c_str());
  return 2;
}

int Measure(const Workload& workload, int rounds, int threads) {
  constexpr int64_t kElement = 8;
  Layout layout;
  layout.world_size = 1;
  Dims allocated = workload.extent;
  for (int d = 0; d < allocated.size(); ++d) allocated[d] += 2 * workload.halo;
  const Dims strides = DenseStrides(allocated, kElement);
  int64_t origin = 0;
  for (int d = 0; d < strides.size(); ++d) origin += workload.halo * strides[d];

  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> pieces;
  for (int64_t i = 0; i < workload.count; ++i) {
    layout.arrays.push_back({"array" + std::to_string(i), DType::kF64, false, workload.extent});
    layout.pieces.push_back({static_cast<uint32_t>(i), 0, 0, Box::Whole(workload.extent)});
    memory.emplace_back(static_cast<size_t>(allocated.Product() * kElement), std::byte{1});
    pieces.push_back(memory.back().data() + origin);
  }
  const auto plan = PlanSave(layout);
  if (!plan.ok()) return Fail(plan.status());
  const auto images = PlanImages(layout, *plan, 0);
  if (!images.ok()) return Fail(images.status());
  const auto tier = LocalTier::Open({.setting = "none"});
  if (!tier.ok()) return Fail(tier.status());
  const auto slot = MemorySlot::Make(*tier, *images, 0, [](uint64_t) { return OkStatus(); });
  if (!slot.ok()) return Fail(slot.status());
  const auto snapshot = SnapshotPlan::Make(*images, std::vector<Dims>(pieces.size(), strides), threads);
  if (!snapshot.ok()) return Fail(snapshot.status());

  const std::vector<std::byte> source(plan->bytes(), std::byte{2});
  std::byte* const target = (*slot)->image(0) + images->images[0].header.size();
  const auto limit = [&] { return Seconds([&] { std::memcpy(target, source.data(), source.size()); }); };
  DrainControl control;
  const auto ours = [&] {
    return Seconds([&] { (void)(*slot)->Fill(*images, *snapshot, pieces.data(), control); });
  };
  limit();
  ours();
  for (int round = 0; round < rounds; ++round) {
    const double limit_before = limit();
    const double ours_before = ours(), ours_after = ours();
    const double limit_after = limit();
    std::printf("{\"workload\": \"%s\", \"limit_s\": [%.9f, %.9f], \"ours_s\": [%.9f, %.9f]}\n",
                workload.name, limit_before, limit_after, ours_before, ours_after);
  }
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  const int64_t mib = argc > 1 ? std::atoll(argv[1]) : 512;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 11;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 1;
  const int64_t elements = mib * (1 << 20) / 8;
  const cairn::Workload workloads[] = {
      {"one dense array", 1, {elements}, 0},
      {"10,000 arrays", 10000, {elements / 10000}, 0},
      {"2-D block, halo 1, rows of 64 KiB", 1, {elements / 8192, 8192}, 1},
      {"2-D block, halo 1, rows of 4 KiB", 1, {elements / 512, 512}, 1},
      {"3-D block, halo 2, rows of 1 KiB", 1, {elements / 128 / 128, 128, 128}, 2},
  };
  int worst = 0;
  for (const cairn::Workload& workload : workloads)
    worst = std::max(worst, cairn::Measure(workload, rounds, threads));
  return worst;
}
