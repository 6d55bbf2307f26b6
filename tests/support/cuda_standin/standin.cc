// A STAND-IN for the CUDA driver, for tests on machines without one: a libcuda.so.1 with the functions that Cairn and its tests use, for two devices.
// It is no emulation: what matters here is in which order things happen, and that they happen at another time than they are asked for.
//
// Device memory is host memory that only streams can read and write: who uses its address as if it were the host's is ended by SIGSEGV.
// A stream is a queue and a thread. An event is a place in one. The legacy default stream of a device waits for the others that were not made
// with CU_STREAM_NON_BLOCKING, and these for it. What the driver would leave undefined ends the process with a line: a copy of memory that was freed
// or unregistered meanwhile, a stream or an event that is used in the context of another device.
//
// Environment: CUDA_STANDIN_COMPUTE_US, CUDA_STANDIN_COPY_US: how long each memset, and each asynchronous copy, waits before it begins;
// CUDA_STANDIN_NO_PINS=1: cuMemHostRegister fails; CUDA_STANDIN_NO_DEVICE=1: cuInit fails.
#include "tests/support/cuda_standin/standin.h"

#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int kDevices = 2;

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "cuda stand-in: %s\n", what);
  std::abort();
}

std::chrono::microseconds FromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  return std::chrono::microseconds(text != nullptr ? std::atoll(text) : 0);
}

// Everything lives as long as the process: threads may run until its end.
std::mutex& mutex = *new std::mutex;
std::condition_variable& changed = *new std::condition_variable;
// Guarded by mutex.
unsigned int held = 0;
int failing = -1;  // the device whose waits do
bool capturing = false;
struct Memory {
  size_t bytes;
  char* alias;  // where streams see it
  CUcontext context;
};
auto& memories = *new std::map<CUdeviceptr, Memory>;
auto& pins = *new std::map<const char*, size_t>;
using Conditions = std::list<std::function<bool()>>;
auto& of_streams = *new Conditions;  // what their threads wait for
auto& of_program = *new Conditions;  // what other threads wait for

}  // namespace

struct CUctx_st {
  int device;
};

struct CUstream_st {
  int device;
  bool blocking;
  // Guarded by mutex.
  std::deque<std::function<void()>> queue = {};
  uint64_t queued = 0, done = 0;
};

struct CUevent_st {
  int device;
  // Guarded by mutex.
  CUstream stream = nullptr;
  uint64_t place = 0;
};

namespace {

CUctx_st contexts[kDevices] = {{0}, {1}};
thread_local std::vector<CUcontext> current;
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
thread_local CUstream own_streams[kDevices];  // CU_STREAM_PER_THREAD
auto& streams = *new std::vector<CUstream>;   // guarded by mutex
CUstream defaults[kDevices];                  // guarded by mutex

using Lock = std::unique_lock<std::mutex>;

void StandUntil(Lock& lock, Conditions& conditions, std::function<bool()> condition) {
  const auto mine = conditions.insert(conditions.end(), std::move(condition));
  changed.wait(lock, *mine);
  conditions.erase(mine);
}

void Await(Lock& lock, Conditions& conditions, CUstream stream, uint64_t place) {
  StandUntil(lock, conditions, [=] { return stream->done >= place; });
}

void Serve(CUstream stream) {
  Lock lock(mutex);
  for (;;) {
    StandUntil(lock, of_streams, [=] { return !stream->queue.empty(); });
    const auto work = std::move(stream->queue.front());
    stream->queue.pop_front();
    lock.unlock();
    work();
    lock.lock();
    ++stream->done;
    changed.notify_all();
  }
}

CUstream MakeStream(int device, bool blocking) {
  const auto stream = new CUstream_st{device, blocking};
  streams.push_back(stream);
  std::thread(Serve, stream).detach();
  return stream;
}

void Push(CUstream stream, std::function<void()> work) {
  stream->queue.push_back(std::move(work));
  ++stream->queued;
  changed.notify_all();
}

void PushWait(CUstream stream, CUstream other, uint64_t place) {
  Push(stream, [other, place] {
    Lock lock(mutex);
    Await(lock, of_streams, other, place);
  });
}

int CurrentDevice() {
  if (current.empty()) return -1;
  return current.back()->device;
}

// The stream of a handle, under the mutex; what the default stream and the others owe each other is queued first.
CUstream Find(CUstream handle) {
  const int device = CurrentDevice();
  if (device < 0) Die("a stream is used without a context");
  CUstream& own = defaults[device];
  if (own == nullptr) own = MakeStream(device, true);
  if (handle == CU_STREAM_PER_THREAD) {
    CUstream& mine = own_streams[device];
    if (mine == nullptr) mine = MakeStream(device, true);
    handle = mine;
  }
  const CUstream stream = handle == nullptr || handle == CU_STREAM_LEGACY ? own : handle;
  if (stream->device != device) Die("a stream is used in the context of another device");
  if (stream == own) {
    for (const CUstream other : streams) {
      if (other != own && other->device == device && other->blocking) PushWait(own, other, other->queued);
    }
  } else if (stream->blocking) {
    PushWait(stream, own, own->queued);
  }
  return stream;
}

// Where streams see device memory; under the mutex.
char* Alias(CUdeviceptr address, size_t bytes, CUcontext* context = nullptr) {
  auto it = memories.upper_bound(address);
  if (it == memories.begin()) return nullptr;
  --it;
  if (address + bytes > it->first + it->second.bytes) return nullptr;
  if (context != nullptr) *context = it->second.context;
  return it->second.alias + (address - it->first);
}

bool IsPinned(const char* address) {
  auto it = pins.upper_bound(address);
  return it != pins.begin() && address < std::prev(it)->first + std::prev(it)->second;
}

bool Forbidden() { return capturing && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED; }

CUresult WaitFor(Lock& lock, CUstream stream, uint64_t place) {
  if (Forbidden()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->device == failing) return CUDA_ERROR_ILLEGAL_ADDRESS;
  Await(lock, of_program, stream, place);
  return CUDA_SUCCESS;
}

// Of a stream, before it does something.
void StandWhileHeld(Lock& lock, unsigned int what) {
  StandUntil(lock, of_streams, [=] { return (held & what) == 0; });
}

struct Rows {
  char* host;
  CUdeviceptr device;
  size_t width, height, host_pitch, device_pitch;
  bool out;
};

CUresult QueueCopy(const Rows& rows, CUstream handle) {
  static const auto delay = FromEnvironment("CUDA_STANDIN_COPY_US");
  Lock lock(mutex);
  CUcontext context = nullptr;
  if (Alias(rows.device, (rows.height - 1) * rows.device_pitch + rows.width, &context) == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  const CUstream stream = Find(handle);
  if (context->device != stream->device) Die("memory is copied in the context of another device");
  Push(stream, [rows, pinned = IsPinned(rows.host)] {
    std::this_thread::sleep_for(delay);
    Lock own(mutex);
    StandWhileHeld(own, CUDA_STANDIN_COPIES);
    if (pinned && !IsPinned(rows.host)) Die("host memory was unregistered while a copy was under way");
    for (size_t row = 0; row < rows.height; ++row) {
      char* const alias = Alias(rows.device + row * rows.device_pitch, rows.width);
      if (alias == nullptr) Die("device memory was freed while a copy was under way");
      char* const host = rows.host + row * rows.host_pitch;
      std::memcpy(rows.out ? host : alias, rows.out ? alias : host, rows.width);
    }
  });
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

#define STANDIN __attribute__((visibility("default")))

STANDIN void cuda_standin_hold(unsigned int what) {
  const Lock lock(mutex);
  held = what;
  changed.notify_all();
}

STANDIN int cuda_standin_stuck_waits(void) {
  const auto vain = [](const Conditions& conditions) {
    return std::count_if(conditions.begin(), conditions.end(),
                         [](const auto& condition) { return !condition(); });
  };
  const Lock lock(mutex);
  return static_cast<size_t>(vain(of_streams)) == streams.size() ? static_cast<int>(vain(of_program)) : 0;
}

STANDIN void* cuda_standin_make_context(int device) { return new CUctx_st{device}; }

STANDIN void cuda_standin_fail_waits(int device) {
  const Lock lock(mutex);
  failing = device;
}

STANDIN void cuda_standin_capture(int on) {
  const Lock lock(mutex);
  capturing = on != 0;
}

STANDIN int cuda_standin_pinned_ranges(void) {
  const Lock lock(mutex);
  return static_cast<int>(pins.size());
}

STANDIN CUresult cuInit(unsigned int) {
  return std::getenv("CUDA_STANDIN_NO_DEVICE") != nullptr ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

STANDIN CUresult cuDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

STANDIN CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_NO_DEVICE          ? "no CUDA-capable device is detected"
          : error == CUDA_ERROR_OUT_OF_MEMORY    ? "out of memory"
          : error == CUDA_ERROR_OPERATING_SYSTEM ? "OS call failed or operation not supported on this OS"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS  ? "an illegal memory access was encountered"
                                                 : "invalid argument";
  return CUDA_SUCCESS;
}

STANDIN CUresult cuDeviceGetCount(int* count) {
  *count = kDevices;
  return CUDA_SUCCESS;
}

STANDIN CUresult cuDeviceGet(CUdevice* device, int number) {
  *device = number;
  return number >= 0 && number < kDevices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

STANDIN CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  std::snprintf(name, static_cast<size_t>(size), "stand-in %d", device);
  return CUDA_SUCCESS;
}

STANDIN CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = &contexts[device];
  return CUDA_SUCCESS;
}

STANDIN CUresult cuCtxPushCurrent(CUcontext context) {
  current.push_back(context);
  return CUDA_SUCCESS;
}

STANDIN CUresult cuCtxPopCurrent(CUcontext* context) {
  *context = current.back();
  current.pop_back();
  return CUDA_SUCCESS;
}

STANDIN CUresult cuCtxSetCurrent(CUcontext context) {
  current = {context};
  return CUDA_SUCCESS;
}

STANDIN CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, capture_mode);
  return CUDA_SUCCESS;
}

STANDIN CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  const size_t whole = (bytes + 4095) / 4096 * 4096;
  const int file = memfd_create("cuda-stand-in", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(whole)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  void* const shown = mmap(nullptr, whole, PROT_NONE, MAP_SHARED, file, 0);
  void* const alias = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (shown == MAP_FAILED || alias == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const Lock lock(mutex);
  *address = reinterpret_cast<CUdeviceptr>(shown);
  memories[*address] = {bytes, static_cast<char*>(alias), current.back()};
  return CUDA_SUCCESS;
}

// As the driver does, after all that the device was asked for.
STANDIN CUresult cuMemFree(CUdeviceptr address) {
  Lock lock(mutex);
  const auto it = memories.find(address);
  if (it == memories.end()) return CUDA_ERROR_INVALID_VALUE;
  const auto all = streams;
  for (const CUstream stream : all) {
    if (stream->device == it->second.context->device) Await(lock, of_program, stream, stream->queued);
  }
  memories.erase(address);
  return CUDA_SUCCESS;
}

STANDIN CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const Lock lock(mutex);
  CUcontext context = nullptr;
  if (Alias(address, 1, &context) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
    *static_cast<unsigned int*>(data) = CU_MEMORYTYPE_DEVICE;
  } else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
    *static_cast<int*>(data) = context->device;
  } else if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT) {
    *static_cast<CUcontext*>(data) = context;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

STANDIN CUresult cuMemHostRegister(void* host, size_t bytes, unsigned int) {
  if (std::getenv("CUDA_STANDIN_NO_PINS") != nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  const Lock lock(mutex);
  if (Forbidden()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  pins[static_cast<const char*>(host)] = bytes;
  return CUDA_SUCCESS;
}

STANDIN CUresult cuMemHostUnregister(void* host) {
  const Lock lock(mutex);
  return pins.erase(static_cast<const char*>(host)) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

STANDIN CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  const Lock lock(mutex);
  *stream = MakeStream(CurrentDevice(), flags != CU_STREAM_NON_BLOCKING);
  return CUDA_SUCCESS;
}

STANDIN CUresult cuStreamSynchronize(CUstream handle) {
  Lock lock(mutex);
  const CUstream stream = Find(handle);
  return WaitFor(lock, stream, stream->queued);
}

STANDIN CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int) {
  const Lock lock(mutex);
  if (event->stream != nullptr) PushWait(Find(handle), event->stream, event->place);
  return CUDA_SUCCESS;
}

STANDIN CUresult cuEventCreate(CUevent* event, unsigned int) {
  *event = new CUevent_st{CurrentDevice()};
  return CUDA_SUCCESS;
}

STANDIN CUresult cuEventRecord(CUevent event, CUstream handle) {
  const Lock lock(mutex);
  const CUstream stream = Find(handle);
  if (event->device != stream->device) Die("an event is recorded on a stream of another device");
  event->stream = stream;
  event->place = stream->queued;
  return CUDA_SUCCESS;
}

STANDIN CUresult cuEventSynchronize(CUevent event) {
  Lock lock(mutex);
  const CUstream stream = event->stream;
  return stream == nullptr ? CUDA_SUCCESS : WaitFor(lock, stream, event->place);
}

STANDIN CUresult cuEventDestroy(CUevent event) {
  delete event;
  return CUDA_SUCCESS;
}

STANDIN CUresult cuMemcpyDtoHAsync(void* host, CUdeviceptr device, size_t bytes, CUstream stream) {
  return QueueCopy({static_cast<char*>(host), device, bytes, 1, 0, 0, true}, stream);
}

STANDIN CUresult cuMemcpyHtoDAsync(CUdeviceptr device, const void* host, size_t bytes, CUstream stream) {
  return QueueCopy({static_cast<char*>(const_cast<void*>(host)), device, bytes, 1, 0, 0, false}, stream);
}

STANDIN CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  const bool out = copy->srcMemoryType == CU_MEMORYTYPE_DEVICE;
  const size_t source_pitch = copy->srcPitch, pitch = copy->dstPitch;
  if (source_pitch < copy->WidthInBytes || pitch < copy->WidthInBytes) return CUDA_ERROR_INVALID_VALUE;
  return out ? QueueCopy({static_cast<char*>(copy->dstHost), copy->srcDevice, copy->WidthInBytes,
                          copy->Height, pitch, source_pitch, true},
                         stream)
             : QueueCopy({static_cast<char*>(const_cast<void*>(copy->srcHost)), copy->dstDevice,
                          copy->WidthInBytes, copy->Height, source_pitch, pitch, false},
                         stream);
}

// Those that wait for the copy: by the legacy default stream.
STANDIN CUresult cuMemcpyDtoH(void* host, CUdeviceptr device, size_t bytes) {
  const CUresult queued = cuMemcpyDtoHAsync(host, device, bytes, nullptr);
  return queued == CUDA_SUCCESS ? cuStreamSynchronize(nullptr) : queued;
}

STANDIN CUresult cuMemcpyHtoD(CUdeviceptr device, const void* host, size_t bytes) {
  const CUresult queued = cuMemcpyHtoDAsync(device, host, bytes, nullptr);
  return queued == CUDA_SUCCESS ? cuStreamSynchronize(nullptr) : queued;
}

STANDIN CUresult cuMemsetD2D32Async(CUdeviceptr address, size_t pitch, unsigned int value, size_t width,
                                    size_t height, CUstream handle) {
  static const auto delay = FromEnvironment("CUDA_STANDIN_COMPUTE_US");
  const Lock lock(mutex);
  if (Alias(address, (height - 1) * pitch + width * 4) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Push(Find(handle), [=] {
    std::this_thread::sleep_for(delay);
    Lock own(mutex);
    StandWhileHeld(own, CUDA_STANDIN_COMPUTING);
    for (size_t row = 0; row < height; ++row) {
      char* const at = Alias(address + row * pitch, width * 4);
      if (at == nullptr) Die("device memory was freed while it was written to");
      for (size_t i = 0; i < width; ++i) std::memcpy(at + 4 * i, &value, 4);
    }
  });
  return CUDA_SUCCESS;
}

STANDIN CUresult cuMemsetD32Async(CUdeviceptr address, unsigned int value, size_t count, CUstream stream) {
  return cuMemsetD2D32Async(address, 4 * count, value, count, 1, stream);
}

}  // extern "C"
