// How fast a snapshot of device memory is, beside a plain cuMemcpyDtoHAsync of as many bytes into pinned memory. Seven rounds in turns, medians:
// "plain 25.1 GB/s, snapshot 24.9 GB/s (1 array), 23.8 GB/s (1000 arrays); NAME".

#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/staging/device.h"
#include "runtime/staging/mapping.h"
#include "runtime/staging/snapshot.h"

namespace {

using namespace cairn;

constexpr uint64_t kBytes = uint64_t{1} << 30;
constexpr int kRounds = 7;

void Must(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "a call of the driver failed: %d\n", result);
  std::exit(1);
}

void Must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

template <typename Body>
double Rate(Body body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(kBytes) / took.count() / 1e9;
}

double Median(std::vector<double> rates) {
  std::nth_element(rates.begin(), rates.begin() + kRounds / 2, rates.end());
  return rates[kRounds / 2];
}

// One image of `count` arrays that lie one after the other, on the device and in it.
struct Snapshot {
  Snapshot(const Device& device, CUdeviceptr memory, int64_t count) {
    const int64_t bytes = static_cast<int64_t>(kBytes) / count;
    Image image;
    for (int64_t i = 0; i < count; ++i) {
      image.copies.push_back(
          {static_cast<uint32_t>(i), Box::Whole({bytes}), 1, static_cast<uint64_t>(i * bytes), Dims{1}});
      pieces.push_back(reinterpret_cast<void*>(memory + static_cast<CUdeviceptr>(i * bytes)));
    }
    image.size_bytes = static_cast<uint64_t>(count * bytes);
    const auto arrays = static_cast<size_t>(count);
    auto made =
        SnapshotPlan::Make({{image}, {}, image.size_bytes}, std::vector<Dims>(arrays, Dims{1}), 1,
                           {&device, std::vector<bool>(arrays, true), std::vector<bool>(arrays, false)});
    Must(made.status());
    plan.emplace(*std::move(made));
  }
  std::vector<void*> pieces;
  std::optional<SnapshotPlan> plan;
};

}  // namespace

int main() {
  if (cuInit(0) != CUDA_SUCCESS) {
    std::printf("tests/gpu: skipped: the driver finds no CUDA device\n");
    return 77;
  }
  const auto device = Device::Cuda();
  Must(device.status());
  CUdevice handle;
  Must(cuDeviceGet(&handle, 0));
  char name[100];
  Must(cuDeviceGetName(name, sizeof name, handle));
  CUcontext context;
  Must(cuDevicePrimaryCtxRetain(&context, handle));
  Must(cuCtxSetCurrent(context));
  CUstream stream;
  Must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr memory;
  Must(cuMemAlloc(&memory, kBytes));
  Must((*device)->Check(reinterpret_cast<void*>(memory)));
  auto host = Mapping::Make(-1, kBytes, "the image", [](uint64_t) { return OkStatus(); });
  Must(host.status());
  Device::Pins pins(**device);
  Must(pins.Add({host->data(), kBytes}));
  std::byte* const images[] = {host->data()};
  Snapshot one(**device, memory, 1), many(**device, memory, 1000);
  std::vector<double> plain, of_one, of_many;
  for (int round = 0; round < kRounds; ++round) {
    plain.push_back(Rate([&] {
      Must(cuMemcpyDtoHAsync(host->data(), memory, kBytes, stream));
      Must(cuStreamSynchronize(stream));
    }));
    of_one.push_back(Rate([&] { Must(one.plan->Run(one.pieces.data(), images)); }));
    of_many.push_back(Rate([&] { Must(many.plan->Run(many.pieces.data(), images)); }));
  }
  std::printf("plain %.1f GB/s, snapshot %.1f GB/s (1 array), %.1f GB/s (1000 arrays); %s\n", Median(plain),
              Median(of_one), Median(of_many), name);
  return 0;
}
