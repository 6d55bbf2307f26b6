// bench_stall: the time that a snapshot stops the program, against one memcpy of the same bytes into memory that exists.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/staging/slot.h"
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

int Measure(const Workload& workload, int rounds) {
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
  const auto slot = Slot::Make(*tier, *images, 0, [](uint64_t) { return OkStatus(); });
  if (!slot.ok()) return Fail(slot.status());
  const auto snapshot = SnapshotPlan::Make(*images, std::vector<Dims>(pieces.size(), strides));
  if (!snapshot.ok()) return Fail(snapshot.status());

  const std::vector<std::byte> source(plan->bytes, std::byte{2});
  std::byte* const target = (*slot)->image(0) + images->images[0].header.size();
  const auto limit = [&] { return Seconds([&] { std::memcpy(target, source.data(), source.size()); }); };
  const auto ours = [&] { return Seconds([&] { snapshot->Run(pieces.data(), **slot); }); };
  limit();
  ours();
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    const double limit_before = limit();
    const double ours_sum = ours() + ours();
    const double limit_after = limit();
    const double spread = std::max(limit_before, limit_after) / std::min(limit_before, limit_after);
    if (spread <= 1.15) ratios.push_back(ours_sum / (limit_before + limit_after));
  }
  if (ratios.empty()) {
    std::printf("%-34s %8.1f  too noisy: the limit itself varied by more than 15 %% in each round\n",
                workload.name, static_cast<double>(plan->bytes) / (1 << 20));
    return 1;
  }
  std::sort(ratios.begin(), ratios.end());
  const double median = ratios[ratios.size() / 2];
  std::printf("%-34s %8.1f %8.3f   %.3f - %.3f %6zu   %s\n", workload.name,
              static_cast<double>(plan->bytes) / (1 << 20), median, ratios[ratios.size() / 4],
              ratios[ratios.size() * 3 / 4], ratios.size(), median <= 1.1 ? "held" : "NOT HELD");
  return median <= 1.1 ? 0 : 1;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  const int64_t mib = argc > 1 ? std::atoll(argv[1]) : 512;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 11;
  const int64_t elements = mib * (1 << 20) / 8;
  std::printf("%-34s %8s %8s   %-13s %6s   bar 1.1\n", "workload", "MiB", "ratio", "middle half", "rounds");
  const cairn::Workload workloads[] = {
      {"one dense array", 1, {elements}, 0},
      {"10,000 arrays", 10000, {elements / 10000}, 0},
      {"2-D block, halo 1, rows of 64 KiB", 1, {elements / 8192, 8192}, 1},
      {"2-D block, halo 1, rows of 4 KiB", 1, {elements / 512, 512}, 1},
      {"3-D block, halo 2, rows of 1 KiB", 1, {elements / 128 / 128, 128, 128}, 2},
  };
  int worst = 0;
  for (const cairn::Workload& workload : workloads) worst = std::max(worst, cairn::Measure(workload, rounds));
  return worst;
}
