#include "runtime/staging/snapshot.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "runtime/staging/drain.h"
#include "runtime/staging/memory_slot.h"
#include "tests/runtime/staging/ranks.h"

#ifndef CAIRN_SANITIZED
// Counts what the program allocates. (Sanitizers bring their own malloc.)
extern "C" void* __libc_malloc(size_t size);
namespace {
std::atomic<int> allocations{0};
}
extern "C" void* malloc(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
#endif

namespace cairn {
namespace {

struct Ready {
  ImagePlan images;
  std::vector<Dims> strides;
  std::unique_ptr<MemorySlot> slot;
  SnapshotPlan snapshot;
};

Ready Prepare(const Layout& layout, uint32_t rank, const std::vector<Dims>& strides, int threads = 1) {
  const auto plan = PlanSave(layout);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  auto images = PlanImages(layout, *plan, rank);
  EXPECT_TRUE(images.ok()) << images.status().message();
  const auto tier = LocalTier::Open({.setting = "none"});
  auto slot = MemorySlot::Make(*tier, *images, 0, TakeAll());
  EXPECT_TRUE(slot.ok()) << slot.status().message();
  auto snapshot = SnapshotPlan::Make(*images, strides, threads);
  EXPECT_TRUE(snapshot.ok()) << snapshot.status().message();
  return {*std::move(images), strides, *std::move(slot), *std::move(snapshot)};
}

void Fill(const Ready& ready, void* const* pieces) {
  DrainControl control;
  EXPECT_TRUE(ready.slot->Fill(ready.images, ready.snapshot, pieces, control).ok());
}

template <typename T>
std::vector<T> DataOf(const Ready& ready) {
  const Image& image = ready.images.images.at(0);
  std::vector<T> data((image.size_bytes - image.header.size()) / sizeof(T));
  std::memcpy(data.data(), ready.slot->image(0) + image.header.size(), data.size() * sizeof(T));
  return data;
}

TEST(Snapshot, PacksAStridedBoxAndLeavesTheHeaderAlone) {
  const Layout layout = MakeLayout(1, {{"u", DType::kI32, false, {2, 3}}}, {{0, 0, 0, {{0, 0}, {2, 3}}}});
  const Ready ready = Prepare(layout, 0, {{20, 4}});  // rows of three in an allocation whose rows have five
  const int32_t memory[] = {-1, 1, 2, 3, -1, -1, 4, 5, 6, -1};
  void* const pieces[] = {const_cast<int32_t*>(memory + 1)};
  Fill(ready, pieces);
  EXPECT_EQ(DataOf<int32_t>(ready), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(std::memcmp(ready.slot->image(0), ready.images.images[0].header.data(),
                        ready.images.images[0].header.size()),
            0);
  EXPECT_EQ(ready.slot->sidecar().state(), SlotState::kStaged);
}

TEST(Snapshot, TakesAFortranArrayAsACArrayWithReversedDimensions) {
  // u(2, 3) in Fortran, column-major with a leading dimension of 4: the layout knows it as [3, 2].
  const Layout layout = MakeLayout(1, {{"u", DType::kI32, true, {3, 2}}}, {{0, 0, 0, {{0, 0}, {3, 2}}}});
  const Ready ready = Prepare(layout, 0, {{16, 4}});
  const int32_t memory[] = {11, 21, -1, -1, 12, 22, -1, -1, 13, 23, -1, -1};
  void* const pieces[] = {const_cast<int32_t*>(memory)};
  Fill(ready, pieces);
  EXPECT_EQ(DataOf<int32_t>(ready), (std::vector<int32_t>{11, 21, 12, 22, 13, 23}));
}

TEST(Snapshot, ReadsThePointersOfThisBoundary) {
  const Layout layout = MakeLayout(1, {{"u", DType::kI32, false, {2}}}, {{0, 0, 0, {{0}, {2}}}});
  const Ready ready = Prepare(layout, 0, {{4}});
  int32_t before[] = {1, 2}, after[] = {3, 4};
  void* pieces[] = {before};
  Fill(ready, pieces);
  pieces[0] = after;
  Fill(ready, pieces);
  EXPECT_EQ(DataOf<int32_t>(ready), (std::vector<int32_t>{3, 4}));
}

TEST(Snapshot, WantsStridesForEveryPieceThatIsCopied) {
  const Layout layout = MakeLayout(1, {{"u", DType::kI32, false, {2}}}, {{0, 0, 0, {{0}, {2}}}});
  const auto plan = PlanSave(layout);
  const auto images = PlanImages(layout, *plan, 0);
  EXPECT_EQ(SnapshotPlan::Make(*images, {}).status().code(), Code::kInvalid);
  EXPECT_EQ(SnapshotPlan::Make(*images, {{4, 4}}).status().code(), Code::kInvalid);
}

// Arrays of very different sizes, some of them strided: several images' worth of parts.
TEST(Snapshot, IsTheSameWithAnyNumberOfThreads) {
  Random random(11);
  const Layout layout = MakeLayout(1,
                                   {{"big", DType::kF64, false, {700, 1000}},
                                    {"s", DType::kI64, false, {}},
                                    {"rows", DType::kF32, false, {3000, 40}},
                                    {"empty", DType::kF32, false, {0, 7}},
                                    {"bytes", DType::kU8, false, {1000003}}},
                                   {{0, 0, 0, {{0, 0}, {700, 1000}}},
                                    {1, 0, 0, {{}, {}}},
                                    {2, 0, 0, {{0, 0}, {3000, 40}}},
                                    {3, 0, 0, {{0, 0}, {0, 7}}},
                                    {4, 0, 0, {{0}, {1000003}}}});
  RankMemory memory(random, layout, 0);
  memory.Fill();
  const std::vector<void*> pieces = memory.pointers();
  const Ready alone = Prepare(layout, 0, memory.strides());
  Fill(alone, pieces.data());
  for (const int threads : {2, 3, 8}) {
    const Ready together = Prepare(layout, 0, memory.strides(), threads);
    for (int round = 0; round < 20; ++round) {
      std::memset(together.slot->image(0) + together.images.images[0].header.size(), 0xEE,
                  together.images.images[0].size_bytes - together.images.images[0].header.size());
      Fill(together, pieces.data());
      ASSERT_EQ(DataOf<std::byte>(together), DataOf<std::byte>(alone))
          << threads << " threads, round " << round;
    }
  }
}

TEST(Snapshot, CopiesAnyRangeOfAnImage) {
  Random random(12);
  const Layout layout = RandomLayout(random, RandomArrays(random), 3);
  const auto plan = PlanSave(layout);
  for (uint32_t rank = 0; rank < layout.world_size; ++rank) {
    RankMemory memory(random, layout, rank);
    memory.Fill();
    const std::vector<void*> pieces = memory.pointers();
    const Ready ready = Prepare(layout, rank, memory.strides());
    Fill(ready, pieces.data());
    for (size_t i = 0; i < ready.images.images.size(); ++i) {
      const Image& image = ready.images.images[i];
      for (int round = 0; round < 200; ++round) {
        const auto begin = static_cast<uint64_t>(Uniform(random, static_cast<int64_t>(image.header.size()),
                                                         static_cast<int64_t>(image.size_bytes)));
        const auto end = static_cast<uint64_t>(
            Uniform(random, static_cast<int64_t>(begin), static_cast<int64_t>(image.size_bytes)));
        std::vector<std::byte> range(end - begin);
        ASSERT_TRUE(ready.snapshot.CopyRange(pieces.data(), i, begin, end, range.data()).ok());
        ASSERT_TRUE(std::equal(range.begin(), range.end(), ready.slot->image(i) + begin));
      }
    }
  }
}

// Rows, columns, blocks, replicas and single elements of four ranks, all of whom fill the images of the first.
TEST(Snapshot, OfRanksThatWriteTogetherIsThatOfOneWhichHoldsAll) {
  const std::vector<ArraySpec> arrays = {{"rows", DType::kF32, false, {400, 30}},
                                         {"columns", DType::kF64, false, {3000, 80}},
                                         {"blocks", DType::kU8, false, {1000, 100}},
                                         {"all", DType::kF32, false, {8000, 4}},
                                         {"s", DType::kI64, false, {}}};
  std::vector<Piece> pieces, whole;
  for (uint32_t r = 0; r < 4; ++r) {
    pieces.push_back({0, r, 0, {{100 * r, 0}, {100, 30}}});
    pieces.push_back({1, r, 0, {{0, 20 * r}, {3000, 20}}});
    pieces.push_back({2, r, 0, {{500 * (r / 2), 50 * (r % 2)}, {500, 50}}});
    pieces.push_back({3, r, 0, Box::Whole(arrays[3].shape)});
    pieces.push_back({4, r, 0, {{}, {}}});
  }
  for (uint32_t a = 0; a < arrays.size(); ++a) whole.push_back({a, 0, 0, Box::Whole(arrays[a].shape)});
  Random random(13);
  const Layout one = MakeLayout(1, arrays, whole), four = MakeLayout(4, arrays, pieces);
  RankMemory memory_of_one(random, one, 0);
  memory_of_one.Fill();
  const Ready expected = Prepare(one, 0, memory_of_one.strides());
  Fill(expected, memory_of_one.pointers().data());

  const auto writers = Writers::Make(four, {0, 0, 0, 0});
  ASSERT_TRUE(writers.ok()) << writers.status().message();
  const auto plan = PlanSave(writers->layout(), {.min_split_bytes = 10'000});
  ASSERT_TRUE(plan.ok());
  for (const int threads : {1, 3}) {
    TempDir dir;
    std::vector<LocalTier> tiers;
    std::vector<std::unique_ptr<MemorySlot>> slots;
    for (uint32_t rank = 0; rank < 4; ++rank) {
      tiers.push_back(*LocalTier::Open({.setting = dir.path(), .job = "7", .node = "n1"}));
      const auto images = PlanImages(*writers, *plan, rank);
      ASSERT_TRUE(images.ok()) << images.status().message();
      EXPECT_EQ(images->images.size(), rank == 0 ? 1u : 0u);
      EXPECT_EQ(images->shared.size(), rank == 0 ? 0u : 1u);
      auto slot = MemorySlot::Make(tiers.back(), *images, 0, TakeAll(), tiers[0].path());
      ASSERT_TRUE(slot.ok()) << slot.status().message();
      slots.push_back(*std::move(slot));
      RankMemory memory(random, four, rank);
      memory.Fill();
      const auto snapshot = SnapshotPlan::Make(*images, memory.strides(), threads);
      ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
      DrainControl control;
      ASSERT_TRUE(slots.back()->Fill(*images, *snapshot, memory.pointers().data(), control).ok());
      // Nobody copies all of what all hold.
      for (const Image& image : rank == 0 ? images->images : images->shared) {
        for (const CopyTask& task : image.copies) EXPECT_LE(task.region.elements(), 60'000);
        EXPECT_EQ(std::count_if(image.copies.begin(), image.copies.end(),
                                [](const CopyTask& task) { return task.piece == 3; }),
                  1);
      }
    }
    EXPECT_EQ(std::memcmp(slots[0]->image(0), expected.slot->image(0), expected.images.images[0].size_bytes),
              0);
  }
}

// A layout with merged, strided and single-element copies, and its memory.
struct Stall {
  Layout layout = MakeLayout(1,
                             {{"dense", DType::kF32, false, {1000}},
                              {"rows", DType::kF64, false, {40, 10}},
                              {"s", DType::kI64, false, {}}},
                             {{0, 0, 0, {{0}, {1000}}}, {1, 0, 0, {{0, 0}, {40, 10}}}, {2, 0, 0, {{}, {}}}});
  std::vector<std::byte> memory = std::vector<std::byte>(40 * 20 * 8);
  std::vector<void*> pieces = std::vector<void*>(3, memory.data());
  Ready ready = Prepare(layout, 0, {{4}, {160, 16}, {}});
};

#ifndef CAIRN_SANITIZED  // a sanitizer's runtime allocates and calls the system by itself
TEST(Snapshot, AllocatesNothing) {
  const Stall stall;
  DrainControl control;
  const int before = allocations.load();
  (void)stall.ready.slot->Fill(stall.ready.images, stall.ready.snapshot, stall.pieces.data(), control);
  EXPECT_EQ(allocations.load(), before);
  std::free(std::malloc(1));
  EXPECT_GT(allocations.load(), before);  // the counter counts
}

TEST(Snapshot, CallsTheSystemForNothing) {
  // Strict seccomp kills at any system call but read, write and exit of the thread.
  const pid_t child = fork();
  if (child == 0) {
    const Stall stall;
    DrainControl control;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(2);
    (void)stall.ready.slot->Fill(stall.ready.images, stall.ready.snapshot, stall.pieces.data(), control);
    syscall(SYS_exit, stall.ready.slot->sidecar().state() == SlotState::kStaged ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "seccomp is not available here";
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace cairn
