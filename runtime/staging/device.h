// Device: the process's device memory, reached through a backend (cairn_backend.h, which says what a side stream and a mark are).
//
// Threads: any, but for one mark, which is used by one thread at a time.
#ifndef CAIRN_RUNTIME_STAGING_DEVICE_H_
#define CAIRN_RUNTIME_STAGING_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planner/base/status.h"
#include "runtime/include/cairn/cairn_backend.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {

class Device {
 public:
  // Loads libcairn_cuda.so and the driver, once in a process. kUnavailable with the remedy where either is missing or too old.
  static Result<const Device*> Cuda();

  Status Check(const void* address) const;
  Status SetStream(int device, void* stream) const;

  // Copies that are queued later begin after what the application's streams hold now.
  void Order() const { backend_.order(); }

  // Queues the bytes [begin, end) of the box in row-major order, from or to the device. Both addresses are those of the box's first element, or where
  // it would lie.
  Status QueueOut(const StridedCopy& copy, const std::byte* device, std::byte* host, int64_t begin,
                  int64_t end) const;
  Status QueueIn(const StridedCopy& copy, const std::byte* host, std::byte* device, int64_t begin,
                 int64_t end) const;

  Status WaitAll() const;

  class Mark {
   public:
    explicit Mark(const Device& device) : device_(&device), mark_(device.backend_.make_mark(), {&device}) {}
    Status Record() const;
    Status Wait() const;

   private:
    struct Free {
      const Device* device;
      void operator()(cairn_mark_v1* mark) const { device->backend_.free_mark(mark); }
    };
    const Device* device_;
    std::unique_ptr<cairn_mark_v1, Free> mark_;
  };

  // Host memory that is pinned as long as this lives. It must live longer.
  class Pins {
   public:
    explicit Pins(const Device& device) : device_(&device) {}
    ~Pins();
    Pins(Pins&& other) noexcept : device_(other.device_), pinned_(std::move(other.pinned_)) {}
    Pins& operator=(Pins&&) = delete;
    Status Add(std::span<std::byte> memory);

   private:
    const Device* device_;
    std::vector<std::byte*> pinned_;
  };

 private:
  explicit Device(const cairn_backend_v1& backend) : backend_(backend) {}
  static Result<const Device*> Load();
  Status Said(int result, const char* what) const;

  const cairn_backend_v1& backend_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_DEVICE_H_
