#include "runtime/restore/upload.h"

#include <utility>

#include "runtime/formats/sums.h"
#include "runtime/restore/stream_copy.h"

namespace cairn {
namespace {

constexpr int kBuffers = 4;  // one that is filled by each thread of an exchange, and one on its way

}  // namespace

Result<std::unique_ptr<Upload>> Upload::Make(const Device& device) {
  std::unique_ptr<Upload> upload(new Upload(device));
  for (int i = 0; i < kBuffers; ++i) {
    CAIRN_ASSIGN_OR_RETURN(Mapping memory, Mapping::Make(-1, kBlockBytes, "a buffer for device memory",
                                                         [](uint64_t) { return OkStatus(); }));
    (void)upload->pins_.Add({memory.data(), memory.size_bytes()});  // without, it is slower
    upload->buffers_.push_back({std::move(memory), Device::Mark(device)});
    upload->idle_.push_back(&upload->buffers_.back());
  }
  device.Order();
  return upload;
}

Upload::~Upload() { (void)device_.WaitAll(); }

Status Upload::Put(const Dims& extent, int64_t element_bytes, const Dims& src_stride, const std::byte* src,
                   int64_t src_origin, const Dims& device_stride, std::byte* first, uint64_t begin,
                   uint64_t end) {
  Buffer* buffer = nullptr;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !idle_.empty(); });
    buffer = idle_.front();
    idle_.pop_front();
  }
  const auto put = [&]() -> Status {
    CAIRN_RETURN_IF_ERROR(buffer->read.Wait());
    const Dims dense = DenseStrides(extent, element_bytes);
    std::byte* const packed = buffer->memory.data();
    CopyPart(StridedCopy::Make(extent, element_bytes, src_stride, dense), src, src_origin, packed,
             -static_cast<int64_t>(begin), begin, end);
    CAIRN_RETURN_IF_ERROR(device_.QueueIn(StridedCopy::Make(extent, element_bytes, dense, device_stride),
                                          packed - begin, first, static_cast<int64_t>(begin),
                                          static_cast<int64_t>(end)));
    return buffer->read.Record();
  };
  const Status status = put();
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(buffer);
  }
  changed_.notify_one();
  return status;
}

}  // namespace cairn
