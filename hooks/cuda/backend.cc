// The backend for CUDA devices: cairn_backend.h, by the driver's functions alone.
//
// Of each device: its primary context, which is the one that the CUDA runtime, and so every framework, works in; and the side stream.
//
//   1. The first copy after order() records an event on the application's stream, and the side stream waits for it. The program stands still
//      between the two, so the event comes after all that it has queued.
//   2. Copies are queued on the side stream, one by one, as calls that every driver has. To gather small ones by a kernel first would need code for
//      each generation of devices, and memory of the program's.
//   3. A mark is an event on each side stream.
//
// The side stream does not block with the legacy default stream, or each would wait for the other.
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "hooks/cuda/driver.h"
#include "runtime/include/cairn/cairn_backend.h"

namespace {

using cairn::cuda::Driver;

// Of one device. Lives as long as the process.
struct Side {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent before = nullptr;  // on the application's stream
  // Guarded by the backend's mutex.
  CUstream application = nullptr;
  uint64_t ordered = 0;  // the last order() that the side stream follows
};

std::string& LastError() {
  thread_local std::string text;
  return text;
}

int Fail(std::string text) {
  LastError() = std::move(text);
  return -1;
}

Driver driver;

int Check(CUresult result, const char* what) {
  return result == CUDA_SUCCESS ? 0 : Fail(std::string(what) + ": " + driver.Text(result));
}

// The first of several calls that fails counts, and ends them.
#define CAIRN_TRY(call)                                           \
  do {                                                            \
    if (const int result_ = (call); result_ != 0) return result_; \
  } while (0)
#define CAIRN_CUDA(name, ...) CAIRN_TRY(Check(driver.name(__VA_ARGS__), #name))

// What this thread calls meanwhile does not end the program's stream captures: nothing of it touches a stream that is being captured.
class Relaxed {
 public:
  Relaxed() { driver.cuThreadExchangeStreamCaptureMode(&mode_); }
  ~Relaxed() { driver.cuThreadExchangeStreamCaptureMode(&mode_); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

class Current {
 public:
  explicit Current(const Side& side) : result_(driver.cuCtxPushCurrent(side.context)) {}
  ~Current() {
    CUcontext popped;
    if (result_ == CUDA_SUCCESS) driver.cuCtxPopCurrent(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  CUresult result() const { return result_; }

 private:
  const Relaxed relaxed_;
  const CUresult result_;
};

std::mutex mutex;
auto& sides =
    *new std::vector<std::unique_ptr<Side>>;  // by device; guarded by mutex; other threads may outlive exit()
uint64_t orders = 0;                          // guarded by mutex

int MeetLocked(int number, Side** side) {
  if (number < 0) return Fail("there is no CUDA device " + std::to_string(number));
  const auto position = static_cast<size_t>(number);
  if (position < sides.size() && sides[position] != nullptr) {
    *side = sides[position].get();
    return 0;
  }
  const Relaxed relaxed;
  auto made = std::make_unique<Side>();
  CUdevice device;
  CAIRN_CUDA(cuDeviceGet, &device, number);
  CAIRN_CUDA(cuDevicePrimaryCtxRetain, &made->context, device);
  const Current current(*made);
  CAIRN_TRY(Check(current.result(), "cuCtxPushCurrent"));
  CAIRN_CUDA(cuStreamCreate, &made->stream, CU_STREAM_NON_BLOCKING);
  CAIRN_CUDA(cuEventCreate, &made->before, CU_EVENT_DISABLE_TIMING);
  if (position >= sides.size()) sides.resize(position + 1);
  sides[position] = std::move(made);
  *side = sides[position].get();
  return 0;
}

// The side of the device that an address belongs to.
int FindLocked(CUdeviceptr address, Side** side) {
  const Relaxed relaxed;
  unsigned int type = 0;
  const CUresult known = driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  if (known != CUDA_SUCCESS || type != CU_MEMORYTYPE_DEVICE)
    return Fail("the address is not one of device memory");
  int number = 0;
  CAIRN_CUDA(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  CAIRN_TRY(MeetLocked(number, side));
  CUcontext context = nullptr;  // stays so for memory of no one context: of a pool, or mapped
  CAIRN_CUDA(cuPointerGetAttribute, &context, CU_POINTER_ATTRIBUTE_CONTEXT, address);
  if (context != nullptr && context != (*side)->context) {
    return Fail("the address is one of CUDA device " + std::to_string(number) +
                ", but is not in the device's primary context, in which the CUDA runtime allocates");
  }
  return 0;
}

// A 2-D copy where the driver takes these pitches, else one copy for each row.
int Queue(const cairn_copy_v1& copy, bool out, CUstream stream) {
  const auto fits = [&](int64_t pitch) {
    return pitch >= static_cast<int64_t>(copy.width) && pitch <= std::numeric_limits<int32_t>::max();
  };
  if (copy.height > 1 && fits(copy.host_pitch) && fits(copy.device_pitch)) {
    CUDA_MEMCPY2D rows{};
    rows.WidthInBytes = copy.width;
    rows.Height = copy.height;
    if (out) {
      rows.srcMemoryType = CU_MEMORYTYPE_DEVICE;
      rows.srcDevice = copy.device;
      rows.srcPitch = static_cast<size_t>(copy.device_pitch);
      rows.dstMemoryType = CU_MEMORYTYPE_HOST;
      rows.dstHost = copy.host;
      rows.dstPitch = static_cast<size_t>(copy.host_pitch);
    } else {
      rows.srcMemoryType = CU_MEMORYTYPE_HOST;
      rows.srcHost = copy.host;
      rows.srcPitch = static_cast<size_t>(copy.host_pitch);
      rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
      rows.dstDevice = copy.device;
      rows.dstPitch = static_cast<size_t>(copy.device_pitch);
    }
    CAIRN_CUDA(cuMemcpy2DAsync, &rows, stream);
    return 0;
  }
  auto* host = static_cast<char*>(copy.host);
  CUdeviceptr device = copy.device;
  for (size_t row = 0; row < copy.height; ++row) {
    if (out) {
      CAIRN_CUDA(cuMemcpyDtoHAsync, host, device, copy.width, stream);
    } else {
      CAIRN_CUDA(cuMemcpyHtoDAsync, device, host, copy.width, stream);
    }
    host += copy.host_pitch;
    device += static_cast<CUdeviceptr>(copy.device_pitch);
  }
  return 0;
}

int Copy(const cairn_copy_v1& copy, bool out) {
  const std::lock_guard lock(mutex);
  Side* side = nullptr;
  CAIRN_TRY(FindLocked(copy.device, &side));
  const Current current(*side);
  CAIRN_TRY(Check(current.result(), "cuCtxPushCurrent"));
  if (side->ordered != orders) {
    CAIRN_CUDA(cuEventRecord, side->before, side->application);
    CAIRN_CUDA(cuStreamWaitEvent, side->stream, side->before, CU_EVENT_WAIT_DEFAULT);
    side->ordered = orders;
  }
  return Queue(copy, out, side->stream);
}

// On every side, after an error too, so that no copy is under way in the end. The first error counts.
template <typename Each, typename Body>
int WaitForEach(const std::vector<Each>& all, Body wait) {
  int result = 0;
  std::string text;
  for (const Each& each : all) {
    if (wait(each) == 0 || result != 0) continue;
    result = -1;
    text = LastError();
  }
  if (result != 0) LastError() = std::move(text);
  return result;
}

// No exception crosses the interface.
template <typename Body>
int Guarded(Body body) {
  try {
    return body();
  } catch (const std::exception&) {
    return -1;  // no memory, not even for a text
  }
}

}  // namespace

struct cairn_mark_v1 {
  struct Point {
    const Side* side;
    CUevent event;
  };
  std::vector<Point> points;
};

namespace {

const char* BackendLastError() { return LastError().c_str(); }

int Open() {
  return Guarded([] {
    const std::string why = driver.Load();
    return why.empty() ? 0 : Fail(why);
  });
}

int CheckAddress(uint64_t address) {
  return Guarded([&] {
    const std::lock_guard lock(mutex);
    Side* side = nullptr;
    return FindLocked(address, &side);
  });
}

int SetStream(int device, void* stream) {
  return Guarded([&] {
    const std::lock_guard lock(mutex);
    Side* side = nullptr;
    CAIRN_TRY(MeetLocked(device, &side));
    const auto given = static_cast<CUstream>(stream);
    // The handle means another stream in each thread; the legacy stream waits for all of them.
    side->application = given == CU_STREAM_PER_THREAD ? nullptr : given;
    return 0;
  });
}

// In any context: registered memory is known to all of them.
int Pin(void* host, size_t bytes) {
  return Guarded([&] {
    const std::lock_guard lock(mutex);
    for (const auto& side : sides) {
      if (side == nullptr) continue;
      const Current current(*side);
      CAIRN_TRY(Check(current.result(), "cuCtxPushCurrent"));
      CAIRN_CUDA(cuMemHostRegister, host, bytes, CU_MEMHOSTREGISTER_PORTABLE);
      return 0;
    }
    return Fail("no device is in use");
  });
}

void Unpin(void* host) {
  const std::lock_guard lock(mutex);
  for (const auto& side : sides) {
    if (side == nullptr) continue;
    const Current current(*side);
    if (current.result() == CUDA_SUCCESS) driver.cuMemHostUnregister(host);
    return;
  }
}

void Order() {
  const std::lock_guard lock(mutex);
  ++orders;
}

int CopyOut(const cairn_copy_v1* copy) {
  return Guarded([&] { return Copy(*copy, true); });
}

int CopyIn(const cairn_copy_v1* copy) {
  return Guarded([&] { return Copy(*copy, false); });
}

cairn_mark_v1* MakeMark() { return new (std::nothrow) cairn_mark_v1; }

void FreeMark(cairn_mark_v1* mark) {
  for (const auto& point : mark->points) {
    const Current current(*point.side);
    if (current.result() == CUDA_SUCCESS) driver.cuEventDestroy(point.event);
  }
  delete mark;
}

int Record(cairn_mark_v1* mark) {
  return Guarded([&] {
    const std::lock_guard lock(mutex);
    size_t next = 0;  // points are in the order of the sides, of which none goes
    for (const auto& side : sides) {
      if (side == nullptr) continue;
      const Current current(*side);
      CAIRN_TRY(Check(current.result(), "cuCtxPushCurrent"));
      if (next == mark->points.size() || mark->points[next].side != side.get()) {
        CUevent event = nullptr;
        CAIRN_CUDA(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
        mark->points.insert(mark->points.begin() + static_cast<std::ptrdiff_t>(next), {side.get(), event});
      }
      CAIRN_CUDA(cuEventRecord, mark->points[next].event, side->stream);
      ++next;
    }
    return 0;
  });
}

int Wait(cairn_mark_v1* mark) {
  return Guarded([&] {
    return WaitForEach(mark->points, [](const cairn_mark_v1::Point& point) {
      const Current current(*point.side);
      CAIRN_TRY(Check(current.result(), "cuCtxPushCurrent"));
      return Check(driver.cuEventSynchronize(point.event), "cuEventSynchronize");
    });
  });
}

int WaitAll() {
  return Guarded([] {
    std::vector<const Side*> all;
    {
      const std::lock_guard lock(mutex);
      for (const auto& side : sides) {
        if (side != nullptr) all.push_back(side.get());
      }
    }
    return WaitForEach(all, [](const Side* side) {
      const Current current(*side);
      CAIRN_TRY(Check(current.result(), "cuCtxPushCurrent"));
      return Check(driver.cuStreamSynchronize(side->stream), "cuStreamSynchronize");
    });
  });
}

constexpr cairn_backend_v1 kBackend = {
    1,       BackendLastError, Open,     CheckAddress, SetStream, Pin,  Unpin,  Order,
    CopyOut, CopyIn,           MakeMark, FreeMark,     Record,    Wait, WaitAll};

}  // namespace

extern "C" __attribute__((visibility("default"))) const cairn_backend_v1* cairn_backend_get(int version) {
  return version == 1 ? &kBackend : nullptr;
}
