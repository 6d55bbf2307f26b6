// Staging from and restoring to device memory, by libcairn_cuda.so over the stand-in for the driver (tests/support/cuda_standin).
// mutants.cmake has the ordering bugs that these tests must find.

#include <cuda.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/restore/upload.h"
#include "runtime/session/items.h"
#include "runtime/staging/device.h"
#include "runtime/staging/drain_control.h"
#include "runtime/staging/memory_slot.h"
#include "runtime/staging/snapshot.h"
#include "tests/support/cuda_standin/standin.h"

namespace cairn {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Memory of a device, by the driver.
class DeviceMemory {
 public:
  DeviceMemory(int device, size_t count) : count_(count) {
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context_, device);
    Enter();
    cuMemAlloc(&address_, 4 * count);
    Set(std::vector<uint32_t>(count, 0));
  }
  ~DeviceMemory() {
    Enter();
    cuMemFree(address_);
  }
  void Enter() const { cuCtxSetCurrent(context_); }  // the device's context
  void Set(const std::vector<uint32_t>& values) {
    Enter();
    cuMemcpyHtoD(address_, values.data(), 4 * count_);
  }
  std::vector<uint32_t> Get() const {
    Enter();
    std::vector<uint32_t> values(count_);
    cuMemcpyDtoH(values.data(), address_, 4 * count_);
    return values;
  }
  CUdeviceptr address() const { return address_; }
  std::byte* data() const { return reinterpret_cast<std::byte*>(address_); }

 private:
  const size_t count_;
  CUcontext context_ = nullptr;
  CUdeviceptr address_ = 0;
};

// Until a thread has done its work, or waits for what is held.
void AwaitDoneOrStuck(const std::atomic<bool>& done) {
  while (!done && cuda_standin_stuck_waits() == 0) std::this_thread::yield();
}

class CudaStaging : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto found = Device::Cuda();
    ASSERT_TRUE(found.ok()) << found.status().message();
    device_ = *found;
  }
  void TearDown() override {
    cuda_standin_hold(0);
    cuda_standin_fail_waits(-1);
    cuda_standin_capture(0);
  }

  // One image without a header, of boxes of 4-byte elements, one after the other.
  SnapshotPlan Plan(const std::vector<Dims>& extents, const std::vector<Dims>& strides,
                    std::vector<bool> late) {
    Image image;
    for (uint32_t p = 0; p < extents.size(); ++p) {
      image.copies.push_back({p, Box::Whole(extents[p]), 4, image.size_bytes, DenseStrides(extents[p], 4)});
      image.size_bytes += 4 * static_cast<uint64_t>(extents[p].Product());
    }
    plan_ = {{image}, {}, image.size_bytes};
    image_.assign(image.size_bytes / 4, 0xdead);
    auto snapshot =
        SnapshotPlan::Make(plan_, strides, 1, {device_, std::vector<bool>(late.size(), true), late});
    EXPECT_TRUE(snapshot.ok());
    return *std::move(snapshot);
  }
  Status Run(const SnapshotPlan& snapshot, std::vector<void*> pieces) {
    std::byte* const images[] = {reinterpret_cast<std::byte*>(image_.data())};
    return snapshot.Run(pieces.data(), images);
  }
  // In another thread, which must wait for what is held; then it is let go.
  void RunBehindWhatIsHeld(const SnapshotPlan& snapshot, const std::vector<void*>& pieces) {
    std::atomic<bool> went_on{false};
    std::thread program([&] {
      EXPECT_TRUE(Run(snapshot, pieces).ok());
      went_on = true;
    });
    AwaitDoneOrStuck(went_on);
    EXPECT_FALSE(went_on);
    cuda_standin_hold(0);
    program.join();
  }

  const Device* device_ = nullptr;
  ImagePlan plan_;
  std::vector<uint32_t> image_;
};

TEST_F(CudaStaging, CopiesComeAfterWhatTheApplicationHasQueuedOnItsStream) {
  for (const unsigned int flags : {CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT}) {
    DeviceMemory memory(0, 5);
    CUstream stream;
    cuStreamCreate(&stream, flags);
    // The legacy default stream, of which nothing is said, waits for those that block.
    ASSERT_TRUE(device_->SetStream(0, flags == CU_STREAM_DEFAULT ? nullptr : stream).ok());
    cuda_standin_hold(CUDA_STANDIN_COMPUTING);
    cuMemsetD32Async(memory.address(), 7, 5, stream);
    const SnapshotPlan snapshot = Plan({{5}}, {{4}}, {false});
    RunBehindWhatIsHeld(snapshot, {memory.data()});
    EXPECT_THAT(image_, Each(7u)) << flags;
  }
}

TEST_F(CudaStaging, CopiesOfAnotherThreadComeAfterTheProgramsPerThreadStream) {
  DeviceMemory memory(0, 5);
  ASSERT_TRUE(device_->SetStream(0, CU_STREAM_PER_THREAD).ok());
  cuda_standin_hold(CUDA_STANDIN_COMPUTING);
  cuMemsetD32Async(memory.address(), 7, 5, CU_STREAM_PER_THREAD);
  const SnapshotPlan snapshot = Plan({{5}}, {{4}}, {false});
  RunBehindWhatIsHeld(snapshot, {memory.data()});
  EXPECT_THAT(image_, Each(7u));
}

TEST_F(CudaStaging, WaitsForAllDevicesWhenOneFails) {
  DeviceMemory memory(0, 3), other(1, 3);
  other.Set({4, 5, 6});
  ASSERT_TRUE(device_->SetStream(0, nullptr).ok() && device_->SetStream(1, nullptr).ok());
  const Device::Mark mark(*device_);
  const std::function<Status()> waits[] = {[&] { return device_->WaitAll(); }, [&] { return mark.Wait(); }};
  for (const auto& wait : waits) {
    const SnapshotPlan snapshot = Plan({{3}, {3}}, {{4}, {4}}, {true, true});
    cuda_standin_hold(CUDA_STANDIN_COPIES);
    ASSERT_TRUE(Run(snapshot, {memory.data(), other.data()}).ok());
    ASSERT_TRUE(mark.Record().ok());
    cuda_standin_fail_waits(0);
    std::atomic<bool> returned{false};
    std::thread waiting([&] {
      const Status status = wait();
      returned = true;
      EXPECT_THAT(status.message(), HasSubstr("an illegal memory access"));
    });
    AwaitDoneOrStuck(returned);
    EXPECT_FALSE(returned);
    cuda_standin_hold(0);
    waiting.join();
    cuda_standin_fail_waits(-1);
    ASSERT_TRUE(snapshot.Finish().ok());
    EXPECT_THAT(image_, ElementsAre(0, 0, 0, 4, 5, 6));
  }
}

TEST_F(CudaStaging, WhatIsStillCopiedLeavesTheProgramsStreamCaptureAlone) {
  DeviceMemory memory(0, 3);
  memory.Set({1, 2, 3});
  const SnapshotPlan snapshot = Plan({{3}}, {{4}}, {true});
  cuda_standin_hold(CUDA_STANDIN_COPIES);
  ASSERT_TRUE(Run(snapshot, {memory.data()}).ok());
  cuda_standin_capture(1);
  cuda_standin_hold(0);
  std::thread([&] {
    EXPECT_TRUE(snapshot.Finish().ok());
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cuThreadExchangeStreamCaptureMode(&mode);
    EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);  // as it was
  }).join();
  EXPECT_THAT(image_, ElementsAre(1, 2, 3));
}

TEST_F(CudaStaging, TheProgramMayChangeWhatIsNotLateAsSoonAsItGoesOn) {
  DeviceMemory memory(0, 5), other(1, 5);
  memory.Set({1, 2, 3, 4, 5});
  other.Set({6, 7, 8, 9, 10});
  const SnapshotPlan snapshot = Plan({{5}, {5}}, {{4}, {4}}, {false, false});
  cuda_standin_hold(CUDA_STANDIN_COPIES);
  RunBehindWhatIsHeld(snapshot, {memory.data(), other.data()});
  EXPECT_FALSE(snapshot.late());
  EXPECT_THAT(image_, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST_F(CudaStaging, ASlotIsStagedWhenTheLateCopiesAreDoneAndNotBefore) {
  DeviceMemory memory(0, 3);
  memory.Set({1, 2, 3});
  const SnapshotPlan snapshot = Plan({{3}}, {{4}}, {true});
  const auto tier = LocalTier::Open({.setting = "none"});
  auto slot = MemorySlot::Make(*tier, plan_, 0, [](uint64_t) { return OkStatus(); });
  ASSERT_TRUE(slot.ok());
  (*slot)->sidecar().Begin({.epoch = 1, .save_id = 1});
  cuda_standin_hold(CUDA_STANDIN_COPIES);
  DrainControl control;
  void* const pieces[] = {memory.data()};
  ASSERT_TRUE((*slot)->Fill(plan_, snapshot, pieces, control).ok());
  EXPECT_EQ((*slot)->sidecar().state(), SlotState::kFilling);
  std::atomic<bool> finished{false};
  std::thread worker([&] {
    EXPECT_TRUE((*slot)->Finish(snapshot).ok());
    finished = true;
  });
  AwaitDoneOrStuck(finished);
  EXPECT_EQ((*slot)->sidecar().state(), SlotState::kFilling);
  cuda_standin_hold(0);
  worker.join();
  EXPECT_EQ((*slot)->sidecar().state(), SlotState::kStaged);
  const auto* const image = reinterpret_cast<const uint32_t*>((*slot)->image(0));
  EXPECT_THAT(std::vector<uint32_t>(image, image + 3), ElementsAre(1, 2, 3));
}

TEST_F(CudaStaging, BoxesMayLieInAnyOrderAndWithGaps) {
  DeviceMemory gaps(0, 24), turned(1, 24), spread(1, 24);
  std::vector<uint32_t> count(24);
  std::iota(count.begin(), count.end(), 0);
  for (DeviceMemory* memory : {&gaps, &turned, &spread}) memory->Set(count);
  // Rows of 3 with a gap of 5; columns for rows; every other element, and the same one again.
  const SnapshotPlan snapshot =
      Plan({{2, 3}, {3, 2}, {2, 2, 2}}, {{32, 4}, {4, 12}, {40, 0, 8}}, {false, true, false});
  ASSERT_TRUE(Run(snapshot, {gaps.data(), turned.data(), spread.data()}).ok());
  ASSERT_TRUE(snapshot.Finish().ok());
  EXPECT_THAT(image_, ElementsAre(0, 1, 2, 8, 9, 10, 0, 3, 1, 4, 2, 5, 0, 2, 0, 2, 10, 12, 10, 12));
}

TEST_F(CudaStaging, AnyPartOfAnImageIsCopiedByItself) {
  DeviceMemory memory(0, 12);
  std::vector<uint32_t> count(12);
  std::iota(count.begin(), count.end(), 100);
  memory.Set(count);
  const SnapshotPlan snapshot = Plan({{3, 2}, {2}}, {{16, 4}, {4}}, {true, false});
  const uint32_t expected[] = {100, 101, 104, 105, 108, 109, 102, 103};
  void* const pieces[] = {memory.data(), memory.data() + 8};
  for (size_t begin = 0; begin < sizeof expected; begin += 3) {
    for (size_t end = begin; end <= sizeof expected; end += 7) {
      std::vector<std::byte> part(end - begin);
      ASSERT_TRUE(snapshot.CopyRange(pieces, 0, begin, end, part.data()).ok());
      EXPECT_EQ(std::memcmp(part.data(), reinterpret_cast<const std::byte*>(expected) + begin, end - begin),
                0)
          << begin << " " << end;
    }
  }
}

TEST_F(CudaStaging, WhatARestorePutsStaysAsItIsUntilTheDeviceHasReadIt) {
  constexpr int64_t kBlocks = 9, kWords = (4 << 20) / 4;
  DeviceMemory memory(1, kBlocks * kWords);
  CUstream stream;
  cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
  ASSERT_TRUE(device_->SetStream(1, stream).ok());
  cuda_standin_hold(CUDA_STANDIN_COMPUTING);
  cuMemsetD32Async(memory.address(), 77, kBlocks * kWords, stream);  // must not come after the restore
  auto upload = Upload::Make(*device_);
  ASSERT_TRUE(upload.ok());
  std::atomic<bool> all_put{false};
  std::thread program([&] {
    const Dims extent = {kBlocks * kWords};
    for (uint32_t block = 0; block < kBlocks; ++block) {
      const std::vector<uint32_t> words(kWords, block);
      const uint64_t begin = uint64_t{4} * kWords * block;
      EXPECT_TRUE((*upload)
                      ->Put(extent, 4, {4}, reinterpret_cast<const std::byte*>(words.data()),
                            -static_cast<int64_t>(begin), {4}, memory.data(), begin, begin + 4 * kWords)
                      .ok());
    }
    all_put = true;
  });
  AwaitDoneOrStuck(all_put);
  cuda_standin_hold(0);
  program.join();
  ASSERT_TRUE((*upload)->Finish().ok());
  const auto found = memory.Get();
  for (uint32_t block = 0; block < kBlocks; ++block) {
    const auto* const begin = found.data() + block * kWords;
    EXPECT_EQ(std::count(begin, begin + kWords, block), kWords) << block;
  }
}

TEST_F(CudaStaging, RefusesMemoryOfAContextThatIsNotTheDevicesPrimaryOne) {
  cuCtxSetCurrent(static_cast<CUcontext>(cuda_standin_make_context(1)));
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc(&address, 16), CUDA_SUCCESS);
  const Status status = device_->Check(reinterpret_cast<void*>(address));
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr("CUDA device 1, but is not in the device's primary context"));
  EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
}

TEST_F(CudaStaging, PinsImagesForTheirLifetime) {
  DeviceMemory device(0, 1);
  ASSERT_TRUE(device_->Check(device.data()).ok());  // memory is pinned for the devices that are in use
  std::vector<std::byte> memory(8192);
  {
    Device::Pins pins(*device_);
    ASSERT_TRUE(pins.Add(memory).ok());
    EXPECT_EQ(cuda_standin_pinned_ranges(), 1);
  }
  EXPECT_EQ(cuda_standin_pinned_ranges(), 0);
}

TEST_F(CudaStaging, RefusesHostMemoryThatIsSaidToBeOfADevice) {
  std::vector<uint32_t> host(4);
  cairn_piece piece{.offset = {0}, .extent = {4}, .stride = {}, .data = host.data()};
  cairn_array array{};
  array.struct_size = sizeof array;
  array.dtype = CAIRN_U32;
  array.ndim = 1;
  array.shape[0] = 4;
  array.piece_count = 1;
  array.pieces = &piece;
  array.memory = CAIRN_MEMORY_CUDA;
  Items items;
  const Status status = items.AddArray("w", array);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_THAT(status.message(), HasSubstr("item \"w\""));
  EXPECT_THAT(status.message(), HasSubstr("not one of device memory"));
}

}  // namespace
}  // namespace cairn
