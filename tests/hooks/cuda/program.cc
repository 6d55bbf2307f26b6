// program: a rank whose state lies in device memory, without a CUDA runtime: its kernels are memsets. For session_test.cc with the stand-in for the
// driver, and with a real GPU (tests/gpu/run). What it holds after step T is T everywhere, so any mixture of two steps shows.
//
// A step: the fence; "weights" (stable until it, on each device), "statistics" (a box with gaps) and "host" become T; the boundary; and at once the
// statistics change, as in the forward pass that follows. Nothing of it is waited for before the boundary.
//
// Prints lines on stdout: "add CODE text" where that fails, "restore CODE text", "resumed STEP VERDICT" (what was restored: "right", or what is not),
// "saved STEP" (a boundary at which a save was asked for was passed), "done CODE", "device NAME".

#include <cuda.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/include/cairn/cairn.h"

namespace {

constexpr size_t kRows = 64, kColumns = 48, kPitch = 64;  // of the statistics, elements
constexpr uint32_t kGap = 0xabcd, kForward = 100000;

void Must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = "";
  cuGetErrorString(result, &text);
  std::printf("cuda %s: %s\n", what, text);
  std::exit(6);
}
#define MUST(call) Must(call, #call)

struct Device {
  int number = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr weights = 0;
};

int Add(cairn_session* session, const std::string& name, std::vector<int64_t> shape,
        std::vector<int64_t> offset, std::vector<int64_t> extent, std::vector<int64_t> stride, void* data,
        int memory, int stable_until) {
  cairn_piece piece{};
  cairn_array array{};
  array.struct_size = sizeof array;
  array.dtype = CAIRN_U32;
  array.ndim = static_cast<int>(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    array.shape[d] = shape[d];
    piece.offset[d] = offset[d];
    piece.extent[d] = extent[d];
    piece.stride[d] = stride[d];
  }
  piece.data = data;
  array.piece_count = 1;
  array.pieces = &piece;
  array.memory = memory;
  array.stable_until = stable_until;
  const int code = cairn_add_array(session, name.c_str(), &array);
  if (code != CAIRN_OK) std::printf("add %d %s\n", code, cairn_last_error());
  return code;
}

std::string Verdict(const std::vector<uint32_t>& values, uint32_t expected, const char* what) {
  for (const uint32_t value : values) {
    if (value != expected)
      return std::string(what) + " has " + std::to_string(value) + " instead of " + std::to_string(expected);
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  int64_t steps = 1000000, save_at = -1;
  size_t words = 6 << 20;  // of the weights on each device, of all ranks
  bool on_host = false, legacy = false, streams_first = false;
  CLI::App app("program");
  app.add_option("--steps", steps);
  app.add_option("--save-at", save_at, "rank 0 asks for a save after this step");
  app.add_option("--words", words);
  app.add_flag("--host", on_host, "the same state in host memory");
  app.add_flag("--legacy-stream", legacy, "works on the legacy default stream, and says nothing of it");
  app.add_flag("--streams-first", streams_first, "names its streams before it adds arrays");
  CLI11_PARSE(app, argc, argv);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const char* rank_text = std::getenv("SLURM_PROCID");
  const char* world_text = std::getenv("SLURM_NTASKS");
  const int64_t rank = rank_text != nullptr ? std::atoll(rank_text) : 0;
  const int64_t world = world_text != nullptr ? std::atoll(world_text) : 1;
  const auto all = static_cast<int64_t>(words);
  const int64_t first = all * rank / world, own = all * (rank + 1) / world - first;
  const auto count = static_cast<size_t>(own);

  cairn_session* session = nullptr;
  if (cairn_open(nullptr, &session) != CAIRN_OK) return 3;
  std::vector<Device> devices;
  CUdeviceptr statistics = 0;
  std::vector<uint32_t> host(1000, 0), host_weights, host_statistics;
  if (on_host) {
    devices.resize(2);
    host_weights.resize(2 * count);
    host_statistics.assign(kRows * kPitch, kGap);
  } else if (cuInit(0) == CUDA_SUCCESS) {
    int number = 0;
    MUST(cuDeviceGetCount(&number));
    devices.resize(2);  // one after the other, over those that there are
    for (int i = 0; i < 2; ++i) {
      Device& device = devices[static_cast<size_t>(i)];
      device.number = i % number;
      CUdevice handle;
      MUST(cuDeviceGet(&handle, device.number));
      char name[100];
      MUST(cuDeviceGetName(name, sizeof name, handle));
      std::printf("device %s\n", name);
      MUST(cuDevicePrimaryCtxRetain(&device.context, handle));
      MUST(cuCtxSetCurrent(device.context));
      if (!legacy) MUST(cuStreamCreate(&device.stream, CU_STREAM_NON_BLOCKING));
      MUST(cuMemAlloc(&device.weights, 4 * count));
    }
    MUST(cuCtxSetCurrent(devices[0].context));
    MUST(cuMemAlloc(&statistics, 4 * kRows * kPitch));
    MUST(cuMemsetD32Async(statistics, kGap, kRows * kPitch, devices[0].stream));
  } else {
    // What Cairn says of it matters, not the address.
    return Add(session, "weights.0", {1}, {0}, {1}, {1}, &host, CAIRN_MEMORY_CUDA, CAIRN_STABLE_FENCE) ==
                   CAIRN_OK
               ? 0
               : 5;
  }
  const auto name_streams = [&] {
    for (const Device& device : devices) cairn_set_stream(session, device.number, device.stream);
  };
  if (streams_first) name_streams();
  const int memory = on_host ? CAIRN_MEMORY_HOST : CAIRN_MEMORY_CUDA;
  for (size_t i = 0; i < devices.size(); ++i) {
    void* const data = on_host ? static_cast<void*>(host_weights.data() + i * count)
                               : reinterpret_cast<void*>(devices[i].weights);
    if (Add(session, "weights." + std::to_string(i), {all}, {first}, {own}, {1}, data, memory,
            CAIRN_STABLE_FENCE) != CAIRN_OK)
      return 5;
  }
  void* const data =
      on_host ? static_cast<void*>(host_statistics.data()) : reinterpret_cast<void*>(statistics);
  if (Add(session, "statistics", {kRows, kColumns}, {0, 0}, {kRows, kColumns}, {kPitch, 1}, data, memory,
          CAIRN_STABLE_STEP_RETURN) != CAIRN_OK ||
      Add(session, "host", {1000}, {0}, {1000}, {1}, host.data(), CAIRN_MEMORY_HOST,
          CAIRN_STABLE_STEP_RETURN) != CAIRN_OK)
    return 5;
  if (!on_host && !legacy && !streams_first) name_streams();

  cairn_report report{};
  report.struct_size = sizeof report;
  const int code = cairn_restore(session, &report);
  std::printf("restore %d %s\n", code, cairn_last_error());
  if (code != CAIRN_OK) return 4;
  if (report.restored != 0) {
    const auto step = static_cast<uint32_t>(report.step);
    std::string verdict = Verdict(host, step, "host");
    std::vector<uint32_t> found = host_statistics;
    if (!on_host) {
      found.resize(kRows * kPitch);
      MUST(cuCtxSetCurrent(devices[0].context));
      MUST(cuMemcpyDtoH(found.data(), statistics, 4 * found.size()));
    }
    for (size_t i = 0; i < found.size() && verdict.empty(); ++i)
      verdict = Verdict({found[i]}, i % kPitch < kColumns ? step : kGap, "statistics");
    for (size_t i = 0; i < devices.size() && verdict.empty(); ++i) {
      std::vector<uint32_t> weights(count);
      if (on_host) {
        weights.assign(host_weights.begin() + static_cast<std::ptrdiff_t>(i * count),
                       host_weights.begin() + static_cast<std::ptrdiff_t>((i + 1) * count));
      } else {
        MUST(cuCtxSetCurrent(devices[i].context));
        MUST(cuMemcpyDtoH(weights.data(), devices[i].weights, 4 * count));
      }
      verdict = Verdict(weights, step, "weights");
    }
    std::printf("resumed %lld %s\n", static_cast<long long>(report.step),
                verdict.empty() ? "right" : verdict.c_str());
  }

  const auto set_statistics = [&](uint32_t value) {
    MUST(cuCtxSetCurrent(devices[0].context));
    MUST(cuMemsetD2D32Async(statistics, 4 * kPitch, value, kColumns, kRows, devices[0].stream));
  };
  for (int64_t i = report.step; i < steps; ++i) {
    const auto step = static_cast<uint32_t>(i + 1);
    if (on_host) {
      std::fill(host_weights.begin(), host_weights.end(), step);
      for (size_t at = 0; at < host_statistics.size(); ++at) {
        if (at % kPitch < kColumns) host_statistics[at] = step;
      }
      usleep(2000);
    } else {
      for (const Device& device : devices) {  // the steps before, so that the queue does not grow
        MUST(cuCtxSetCurrent(device.context));
        MUST(cuStreamSynchronize(device.stream));
      }
      cairn_fence(session);
      for (const Device& device : devices) {
        MUST(cuCtxSetCurrent(device.context));
        MUST(cuMemsetD32Async(device.weights, step, count, device.stream));
      }
      set_statistics(step);
    }
    std::fill(host.begin(), host.end(), step);
    if (rank == 0 && step == save_at) cairn_save(session, nullptr);
    cairn_step(session, step);
    if (!on_host) set_statistics(step + kForward);
    std::fill(host.begin(), host.end(), step + kForward);
    if (step == save_at) std::printf("saved %u\n", step);
  }
  if (!on_host) {
    set_statistics(static_cast<uint32_t>(steps));
    for (const Device& device : devices) {
      MUST(cuCtxSetCurrent(device.context));
      MUST(cuStreamSynchronize(device.stream));
    }
  }
  std::fill(host.begin(), host.end(), static_cast<uint32_t>(steps));
  std::printf("done %d\n", cairn_finalize(&session));
  return 0;
}
