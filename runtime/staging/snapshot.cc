#include "runtime/staging/snapshot.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cairn {
namespace {

// Small enough that the threads end together, large enough that taking one costs nothing.
constexpr int64_t kPartBytes = 2 << 20;

}  // namespace

Result<SnapshotPlan> SnapshotPlan::Make(const ImagePlan& plan, const std::vector<Dims>& piece_strides,
                                        int threads, const DevicePieces& devices) {
  SnapshotPlan snapshot;
  const std::vector<Image>& images = plan.shared.empty() ? plan.images : plan.shared;
  for (uint32_t i = 0; i < images.size(); ++i) {
    for (const CopyTask& task : images[i].copies) {
      if (task.piece >= piece_strides.size() || piece_strides[task.piece].size() != task.region.rank()) {
        return Status(Code::kInvalid, "piece " + std::to_string(task.piece) + " has no strides of " +
                                          std::to_string(task.region.rank()) + " dimensions");
      }
      const Dims& strides = piece_strides[task.piece];
      Op op;
      op.piece = task.piece;
      op.image = i;
      op.source_offset = 0;
      for (int d = 0; d < strides.size(); ++d) op.source_offset += task.region.offset[d] * strides[d];
      op.offset = task.offset;
      op.copy = StridedCopy::Make(task.region.extent, task.element_bytes, strides, task.stride);
      op.on_device = devices.device != nullptr && devices.on_device[task.piece];
      op.late = op.on_device && devices.late[task.piece];
      if (op.on_device) snapshot.device_ = devices.device;
      snapshot.late_ |= op.late;
      snapshot.ops_.push_back(op);
    }
  }
  if (threads > 1) snapshot.CutIntoParts();
  snapshot.crew_ = std::make_unique<Crew>(threads, "cairn-copy");
  if (snapshot.device_ != nullptr) {
    snapshot.in_time_.emplace(*snapshot.device_);
    snapshot.all_.emplace(*snapshot.device_);
  }
  return snapshot;
}

void SnapshotPlan::CutIntoParts() {
  int64_t room = 0;  // that is left in the last part
  for (size_t op = 0; op < ops_.size(); ++op) {
    for (int64_t at = 0; at < ops_[op].copy.bytes();) {
      if (room == 0) {
        parts_.push_back({op, at, 0});
        room = kPartBytes;
      }
      const int64_t taken = std::min(room, ops_[op].copy.bytes() - at);
      parts_.back().bytes += taken;
      room -= taken;
      at += taken;
    }
  }
}

Status SnapshotPlan::Run(void* const* pieces, std::byte* const* images) const {
  if (device_ == nullptr) {
    CopyHost(pieces, images);
    return OkStatus();
  }
  const Status queued = QueueDevice(pieces, images);
  if (!queued.ok()) {
    (void)device_->WaitAll();
    return queued;
  }
  CopyHost(pieces, images);
  return Await(*in_time_);
}

Status SnapshotPlan::Finish() const { return late_ ? Await(*all_) : OkStatus(); }

Status SnapshotPlan::Await(const Device::Mark& mark) const {
  const Status waited = mark.Wait();
  if (!waited.ok()) (void)device_->WaitAll();
  return waited;
}

Status SnapshotPlan::QueueDevice(void* const* pieces, std::byte* const* images) const {
  device_->Order();
  for (const bool late : {false, true}) {
    for (const Op& op : ops_) {
      if (!op.on_device || op.late != late) continue;
      CAIRN_RETURN_IF_ERROR(
          device_->QueueOut(op.copy, static_cast<const std::byte*>(pieces[op.piece]) + op.source_offset,
                            images[op.image] + op.offset, 0, op.copy.bytes()));
    }
    CAIRN_RETURN_IF_ERROR((late ? all_ : in_time_)->Record());
  }
  return OkStatus();
}

void SnapshotPlan::CopyHost(void* const* pieces, std::byte* const* images) const {
  const auto copy = [&](const Op& op, int64_t begin, int64_t end) {
    if (op.on_device || begin == end) return;
    op.copy.Run(static_cast<const std::byte*>(pieces[op.piece]) + op.source_offset,
                images[op.image] + op.offset + op.copy.DstOffset(begin), begin, end);
  };
  if (crew_->size() > 1) {
    return crew_->Run(static_cast<uint32_t>(parts_.size()), [&](uint32_t number, int) {
      const Part& part = parts_[number];
      size_t number_of_op = part.op;
      int64_t begin = part.in_op;
      for (int64_t left = part.bytes; left > 0; ++number_of_op) {
        const Op& op = ops_[number_of_op];
        const int64_t end = std::min(begin + left, op.copy.bytes());
        copy(op, begin, end);
        left -= end - begin;
        begin = 0;
      }
    });
  }
  for (const Op& op : ops_) copy(op, 0, op.copy.bytes());
}

Status SnapshotPlan::CopyRange(void* const* pieces, size_t image, uint64_t begin, uint64_t end,
                               std::byte* out) const {
  Status status;
  if (device_ != nullptr) device_->Order();
  ForEachOp(image, begin, end, out, [&](const Op& op, int64_t from, int64_t to, std::byte* at) {
    const std::byte* const first = static_cast<const std::byte*>(pieces[op.piece]) + op.source_offset;
    if (!op.on_device) {
      op.copy.Run(first, at, from, to);
    } else if (status.ok()) {
      status = device_->QueueOut(op.copy, first, at - from, from, to);  // dense: nobody else's lies between
    }
  });
  if (device_ == nullptr) return OkStatus();
  const Status waited = device_->WaitAll();
  return status.ok() ? waited : status;
}

template <typename Copy>
void SnapshotPlan::ForEachOp(size_t image, uint64_t begin, uint64_t end, std::byte* out, Copy copy) const {
  const auto ends_before = [&](const Op& op) {
    return std::pair<size_t, uint64_t>(op.image, op.offset + static_cast<uint64_t>(op.copy.bytes())) <=
           std::pair(image, begin);
  };
  for (auto op = std::partition_point(ops_.begin(), ops_.end(), ends_before);
       op != ops_.end() && op->image == image && op->offset < end; ++op) {
    const uint64_t from = std::max(begin, op->offset);
    const uint64_t to = std::min(end, op->offset + static_cast<uint64_t>(op->copy.bytes()));
    copy(*op, static_cast<int64_t>(from - op->offset), static_cast<int64_t>(to - op->offset),
         out + (from - begin));
  }
}

}  // namespace cairn
