#include "runtime/staging/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <string>

#include "runtime/io/library.h"

namespace cairn {
namespace {

constexpr const char kLibrary[] = "libcairn_cuda.so";

// The bytes [begin, end) of the box as rectangles, each as large as can be. The pitches are those of more rows than one.
template <
    typename Take>  // Status(int64_t src, int64_t dst, int64_t width, int64_t height, int64_t src_pitch, int64_t dst_pitch)
Status ForEachRectangle(const StridedCopy& copy, int64_t begin, int64_t end, Take take) {
  const auto inner = static_cast<size_t>(std::max(copy.loops, 1) - 1);
  for (int64_t at = begin; at < end;) {
    const int64_t in_run = at % copy.run_bytes, left = end - at;
    const int64_t width = std::min(copy.run_bytes - in_run, left);
    int64_t run = at / copy.run_bytes, height = 1, src = in_run, dst = in_run;
    if (copy.loops > 0 && width == copy.run_bytes)
      height = std::min(copy.count[inner] - run % copy.count[inner], left / width);
    for (auto d = static_cast<size_t>(copy.loops); d-- > 0; run /= copy.count[d]) {
      src += run % copy.count[d] * copy.src_stride[d];
      dst += run % copy.count[d] * copy.dst_stride[d];
    }
    CAIRN_RETURN_IF_ERROR(take(src, dst, width, height, copy.src_stride[inner], copy.dst_stride[inner]));
    at += width * height;
  }
  return OkStatus();
}

}  // namespace

Result<const Device*> Device::Cuda() {
  static const Result<const Device*> device = Load();  // for good: the driver stays in the process
  return device;
}

Result<const Device*> Device::Load() {
  void* library = OpenLibrary(kLibrary);
  if (library == nullptr) {
    return Status(Code::kUnavailable,
                  std::string("memory of a CUDA device needs ") + kLibrary + ", which cannot be loaded: " +
                      dlerror() + "; it is built where CMake finds cuda.h, and installed with libcairn.so");
  }
  const auto get = reinterpret_cast<cairn_backend_get_fn*>(dlsym(library, CAIRN_BACKEND_GET));
  const cairn_backend_v1* backend = get != nullptr ? get(1) : nullptr;
  if (backend == nullptr) {
    return Status(Code::kUnavailable,
                  std::string(kLibrary) +
                      " is of another version of Cairn: install the one that came with this libcairn.so");
  }
  const Device device(*backend);
  CAIRN_RETURN_IF_ERROR(device.Said(backend->open(), "memory of a CUDA device cannot be reached"));
  return new const Device(device);
}

Status Device::Said(int result, const char* what) const {
  if (result == 0) return OkStatus();
  return {Code::kUnavailable, std::string(what) + ": " + backend_.last_error()};
}

Status Device::Check(const void* address) const {
  if (backend_.check(reinterpret_cast<uintptr_t>(address)) == 0) return OkStatus();
  return {Code::kInvalid, backend_.last_error()};
}

Status Device::SetStream(int device, void* stream) const {
  return Said(backend_.set_stream(device, stream), "the stream cannot be used");
}

Status Device::QueueOut(const StridedCopy& copy, const std::byte* device, std::byte* host, int64_t begin,
                        int64_t end) const {
  return ForEachRectangle(
      copy, begin, end,
      [&](int64_t src, int64_t dst, int64_t width, int64_t height, int64_t src_pitch, int64_t dst_pitch) {
        const cairn_copy_v1 part{host + dst,
                                 reinterpret_cast<uintptr_t>(device + src),
                                 static_cast<size_t>(width),
                                 static_cast<size_t>(height),
                                 dst_pitch,
                                 src_pitch};
        return Said(backend_.copy_out(&part), "copy from the device");
      });
}

Status Device::QueueIn(const StridedCopy& copy, const std::byte* host, std::byte* device, int64_t begin,
                       int64_t end) const {
  return ForEachRectangle(
      copy, begin, end,
      [&](int64_t src, int64_t dst, int64_t width, int64_t height, int64_t src_pitch, int64_t dst_pitch) {
        const cairn_copy_v1 part{const_cast<std::byte*>(host) + src,
                                 reinterpret_cast<uintptr_t>(device + dst),
                                 static_cast<size_t>(width),
                                 static_cast<size_t>(height),
                                 src_pitch,
                                 dst_pitch};
        return Said(backend_.copy_in(&part), "copy to the device");
      });
}

Status Device::WaitAll() const { return Said(backend_.wait_all(), "wait for the device"); }

Status Device::Mark::Record() const {
  if (mark_ == nullptr) return {Code::kOutOfMemory, "no memory for a mark of the device"};
  return device_->Said(device_->backend_.record(mark_.get()), "record an event");
}

Status Device::Mark::Wait() const {
  if (mark_ == nullptr) return {Code::kOutOfMemory, "no memory for a mark of the device"};
  return device_->Said(device_->backend_.wait(mark_.get()), "copies of the device");
}

Device::Pins::~Pins() {
  for (std::byte* memory : pinned_) device_->backend_.unpin(memory);
}

Status Device::Pins::Add(std::span<std::byte> memory) {
  CAIRN_RETURN_IF_ERROR(
      device_->Said(device_->backend_.pin(memory.data(), memory.size()), "host memory cannot be pinned"));
  pinned_.push_back(memory.data());
  return OkStatus();
}

}  // namespace cairn
