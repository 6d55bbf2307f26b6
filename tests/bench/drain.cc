// bench_drain: from images in memory to a durable file, against a plain loop of O_DIRECT writes of the same memory into one file, fsynced.
//
//     bench_drain FOLDER MIB ROUNDS    one image of this size
//     bench_drain FOLDER small ROUNDS  10,000 arrays of 16 KiB, from the program's memory on
#include "runtime/staging/drain.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/formats/names.h"
#include "runtime/formats/sums.h"
#include "runtime/staging/mapping.h"
#include "runtime/staging/memory_slot.h"
#include "runtime/staging/snapshot.h"

namespace cairn {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "bench_drain: %s\n", what.c_str());
  std::exit(2);
}

template <typename T>
T OrDie(Result<T> result) {
  if (!result.ok()) Die(result.status().message());
  return *std::move(result);
}

class Bench {
 public:
  Bench(std::string folder, int64_t arrays, int64_t bytes)
      : folder_(std::move(folder)),
        memory_(static_cast<size_t>(arrays), std::vector<std::byte>(bytes, std::byte{1})) {
    Layout layout;
    layout.world_size = 1;
    for (uint32_t i = 0; i < memory_.size(); ++i) {
      layout.arrays.push_back({"array" + std::to_string(i), DType::kU8, false, {bytes}});
      layout.pieces.push_back({i, 0, 0, Box::Whole({bytes})});
      pointers_.push_back(memory_[i].data());
    }
    plan_ = OrDie(PlanImages(layout, OrDie(PlanSave(layout)), 0));
    if (plan_.images.size() != 1) Die("more than one image");
    snapshot_ = std::make_unique<SnapshotPlan>(
        OrDie(SnapshotPlan::Make(plan_, std::vector<Dims>(memory_.size(), Dims{1}))));
    slot_ = OrDie(MemorySlot::Make(OrDie(LocalTier::Open({.setting = "none"})), plan_, 0,
                                   [](uint64_t) { return OkStatus(); }));
    Stage();
    // Whichever is faster here. The first of each warms up.
    for (const bool reserve : {false, true, false, true, false, true}) {
      reserve_ = reserve;
      const double seconds = Limit();
      if (best_ == 0 || seconds < best_) {
        best_ = seconds;
        faster_ = reserve;
      }
    }
    reserve_ = faster_;
  }

  // The program's part of a save.
  void Stage() {
    slot_->sidecar().Begin({.epoch = 1});
    std::byte* const image = slot_->image(0);
    if (!snapshot_->Run(pointers_.data(), &image).ok()) std::abort();
    slot_->sidecar().MarkStaged();
  }

  double Ours(bool staging_too) {
    if (!staging_too) Stage();
    const auto begin = Clock::now();
    if (staging_too) Stage();
    DrainControl control;
    OrDie(Drain(*slot_, plan_, {.directory = folder_}, control));
    const double seconds = Since(begin);
    Remove(names::Shard(plan_.images[0].number));
    Remove(names::Sums(plan_.images[0].number));
    return seconds;
  }

  double Limit() {
    const Image& image = plan_.images[0];
    const auto begin = Clock::now();
    const int file = open((folder_ + "/limit").c_str(), O_CREAT | O_EXCL | O_WRONLY | O_DIRECT, 0644);
    if (file < 0) Die("the folder must be on a disk that takes O_DIRECT");
    bool good = !reserve_ || fallocate(file, 0, 0, static_cast<off_t>(image.size_bytes)) == 0;
    for (uint64_t at = 0; good && at < image.size_bytes; at += kBlockBytes) {
      const uint64_t bytes = WholePages(std::min<uint64_t>(kBlockBytes, image.size_bytes - at));
      good = pwrite(file, slot_->image(0) + at, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
    }
    good = good && ftruncate(file, static_cast<off_t>(image.size_bytes)) == 0 && fsync(file) == 0 &&
           close(file) == 0;
    const double seconds = Since(begin);
    if (!good) Die("the limit cannot be written");
    Remove("limit");
    return seconds;
  }

 private:
  static double Since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  void Remove(const std::string& name) const {
    if (unlink((folder_ + "/" + name).c_str()) != 0) Die("cannot remove " + name);
  }

  const std::string folder_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<void*> pointers_;
  ImagePlan plan_;
  std::unique_ptr<SnapshotPlan> snapshot_;
  std::unique_ptr<MemorySlot> slot_;
  bool reserve_ = false, faster_ = false;
  double best_ = 0;
};

int Measure(const std::string& folder, const std::string& what, int rounds) {
  const bool small = what == "small";
  const int64_t mib = small ? 0 : std::atoll(what.c_str());
  Bench bench(folder, small ? 10000 : 1, small ? 16 << 10 : mib << 20);
  const std::string workload = small ? "10,000 arrays of 16 KiB" : what + " MiB in one file";
  bench.Ours(small);
  for (int round = 0; round < rounds; ++round) {
    const double limit_before = bench.Limit();
    const double first = bench.Ours(small), second = bench.Ours(small);
    const double limit_after = bench.Limit();
    std::printf("{\"workload\": \"%s\", \"limit_s\": [%.9f, %.9f], \"ours_s\": [%.9f, %.9f]}\n",
                workload.c_str(), limit_before, limit_after, first, second);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace cairn

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  return cairn::Measure(argv[1], argv[2], std::atoi(argv[3]));
}
