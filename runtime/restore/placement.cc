#include "runtime/restore/placement.h"

#include <algorithm>

#include "runtime/formats/sums.h"
#include "runtime/restore/stream_copy.h"

namespace cairn {

Stretch::Stretch(const FileRegion& region, uint64_t block)
    : begin(region.BytesBefore(block * kBlockBytes)), end(region.BytesBefore((block + 1) * kBlockBytes)) {}

int64_t OriginIn(uint64_t block, const FileRegion& region) {
  return static_cast<int64_t>(region.offset) - static_cast<int64_t>(block * kBlockBytes);
}

Status Placement::Check() const {
  for (size_t r = 0; r < plan_.regions.size(); ++r) {
    for (const uint32_t piece : plan_.pieces_of[r]) {
      if (piece >= destinations_.size() || !destinations_[piece].box.Contains(plan_.regions[r].box))
        return {Code::kInternal, "the exchange plan brings " + plan_.regions[r].box.ToString() +
                                     ", which no destination holds"};
    }
  }
  return OkStatus();
}

Status Placement::Open() {
  for (const Destination& destination : destinations_) {
    if (destination.device == nullptr || upload_ != nullptr) continue;
    CAIRN_ASSIGN_OR_RETURN(upload_, Upload::Make(*destination.device));
  }
  return OkStatus();
}

Status Placement::Finish() { return upload_ == nullptr ? OkStatus() : upload_->Finish(); }

StridedCopy Placement::CopyOf(const FileRegion& region, const Dims& src_stride, const Destination& to) const {
  return StridedCopy::Make(region.box.extent, to.element_bytes, src_stride, to.stride_bytes);
}

// From the destination's first element to the region's.
int64_t Placement::OriginAt(const FileRegion& region, const Destination& to) {
  int64_t origin = 0;
  for (int d = 0; d < region.box.rank(); ++d)
    origin += (region.box.offset[d] - to.box.offset[d]) * to.stride_bytes[d];
  return origin;
}

Placement::Direct Placement::DirectOf(const ExchangePlan::Read& read) const {
  // All that is wanted of the block, by where it begins; what meets something else there goes through the buffer, and so does what is packed
  // with other regions for somebody.
  std::vector<uint32_t> wanted = read.own;
  std::vector<uint32_t> packed;
  for (const ExchangePlan::Handover& handover : read.handovers) {
    wanted.insert(wanted.end(), handover.regions.begin(), handover.regions.end());
    if (handover.regions.size() > 1)
      packed.insert(packed.end(), handover.regions.begin(), handover.regions.end());
  }
  std::sort(packed.begin(), packed.end());
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::sort(wanted.begin(), wanted.end(),
            [this](uint32_t a, uint32_t b) { return plan_.regions[a].offset < plan_.regions[b].offset; });
  Direct direct;
  uint64_t met = 0;  // the furthest end of those before
  for (size_t i = 0; i < wanted.size(); ++i) {
    const uint32_t number = wanted[i];
    const FileRegion& region = plan_.regions[number];
    const bool alone = region.offset >= met &&
                       (i + 1 == wanted.size() || plan_.regions[wanted[i + 1]].offset >= region.end());
    met = std::max(met, region.end());
    if (!alone || plan_.pieces_of[number].size() != 1 ||
        std::binary_search(packed.begin(), packed.end(), number))
      continue;
    const Destination& to = destinations_[plan_.pieces_of[number].front()];
    if (to.device != nullptr) continue;
    const StridedCopy copy = CopyOf(region, region.stride, to);
    const bool handed_on =
        std::any_of(read.handovers.begin(), read.handovers.end(),
                    [&](const auto& handover) { return handover.regions.front() == number; });
    if (static_cast<uint64_t>(copy.run_bytes) < direct_run_bytes_ || (handed_on && copy.loops > 0)) continue;
    const Stretch stretch(region, read.block);
    std::byte* const base = to.data + OriginAt(region, to);
    const int64_t origin = OriginIn(read.block, region);
    ForEachRun(copy, stretch.begin, stretch.end, [&](int64_t src, int64_t dst, uint64_t bytes) {
      direct.diversions.push_back({static_cast<uint64_t>(origin + src), {base + dst, bytes}});
    });
    direct.regions.push_back(number);
  }
  std::sort(direct.regions.begin(), direct.regions.end());
  return direct;
}

std::span<std::byte> Placement::PlaceOf(uint32_t number, uint64_t block) const {
  if (plan_.pieces_of[number].size() != 1) return {};
  const FileRegion& region = plan_.regions[number];
  const Destination& to = destinations_[plan_.pieces_of[number].front()];
  if (to.device != nullptr) return {};
  const StridedCopy copy = CopyOf(region, DenseStrides(region.box.extent, region.element_bytes), to);
  if (copy.loops > 0) return {};
  const Stretch stretch(region, block);
  return {to.data + OriginAt(region, to) + stretch.begin, stretch.bytes()};
}

Status Placement::Fill(uint32_t number, const Dims& src_stride, const std::byte* src, int64_t src_origin,
                       const Stretch& stretch) const {
  const FileRegion& region = plan_.regions[number];
  for (const uint32_t piece : plan_.pieces_of[number]) {
    const Destination& to = destinations_[piece];
    if (to.device != nullptr) {
      CAIRN_RETURN_IF_ERROR(upload_->Put(region.box.extent, to.element_bytes, src_stride, src, src_origin,
                                         to.stride_bytes, to.data + OriginAt(region, to), stretch.begin,
                                         stretch.end));
      continue;
    }
    CopyPart(CopyOf(region, src_stride, to), src, src_origin, to.data, OriginAt(region, to), stretch.begin,
             stretch.end);
  }
  return OkStatus();
}

}  // namespace cairn
