#include "runtime/restore/parcels.h"

#include <algorithm>
#include <string>

#include "runtime/restore/stream_copy.h"

namespace cairn {

Status Parcels::Check(const std::vector<SourceFile>& files) const {
  for (const ExchangePlan::Read& read : plan_.reads) {
    if (read.file >= files.size()) return {Code::kInternal, "the exchange plan reads an unknown file"};
  }
  for (const FileRegion& region : plan_.regions) {
    if (region.file >= files.size())
      return {Code::kInternal, "the exchange plan reads file " + std::to_string(region.file) + " of " +
                                   std::to_string(files.size())};
    if (region.end() > files[region.file].size_bytes)
      return {Code::kInternal, "the exchange plan reads behind the end of " + files[region.file].path};
  }
  return OkStatus();
}

Status Parcels::FillOwn(const ExchangePlan::Read& read, const Placement::Direct& direct,
                        std::span<const std::byte> block) const {
  for (const uint32_t number : read.own) {
    if (std::binary_search(direct.regions.begin(), direct.regions.end(), number)) continue;
    const FileRegion& region = plan_.regions[number];
    CAIRN_RETURN_IF_ERROR(place_.Fill(number, region.stride, block.data(), OriginIn(read.block, region),
                                      Stretch(region, read.block)));
  }
  return OkStatus();
}

std::span<const std::byte> Parcels::Pack(const ExchangePlan::Handover& handover, uint64_t number,
                                         const Placement::Direct& direct, std::span<const std::byte> block,
                                         std::vector<std::byte>* room) const {
  if (std::binary_search(direct.regions.begin(), direct.regions.end(), handover.regions[0]))
    return place_.PlaceOf(handover.regions[0], number);
  if (const auto parcel = WhereItLies(handover, number, block)) return *parcel;
  room->resize(std::max<size_t>(room->size(), handover.bytes));
  uint64_t at = 0;
  for (const uint32_t r : handover.regions) {
    const FileRegion& region = plan_.regions[r];
    const Stretch stretch(region, number);
    const Dims dense = DenseStrides(region.box.extent, region.element_bytes);
    CopyPart(StridedCopy::Make(region.box.extent, region.element_bytes, region.stride, dense), block.data(),
             OriginIn(number, region), room->data(),
             static_cast<int64_t>(at) - static_cast<int64_t>(stretch.begin), stretch.begin, stretch.end);
    at += stretch.bytes();
  }
  return std::span<const std::byte>(*room).first(at);
}

std::optional<std::span<const std::byte>> Parcels::WhereItLies(const ExchangePlan::Handover& handover,
                                                               uint64_t number,
                                                               std::span<const std::byte> block) const {
  int64_t begin = 0, end = 0;
  for (const uint32_t r : handover.regions) {
    const FileRegion& region = plan_.regions[r];
    const Stretch stretch(region, number);
    const int64_t at = OriginIn(number, region) + static_cast<int64_t>(stretch.begin);
    if (region.end() - region.offset != region.bytes() || (end > 0 && at != end)) return std::nullopt;
    if (end == 0) begin = at;
    end = at + static_cast<int64_t>(stretch.bytes());
  }
  return block.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

Status Parcels::Fill(const ExchangePlan::Receipt& receipt, std::span<const std::byte> parcel) const {
  uint64_t at = 0;
  for (const uint32_t number : receipt.regions) {
    const FileRegion& region = plan_.regions[number];
    const Stretch stretch(region, receipt.block);
    CAIRN_RETURN_IF_ERROR(
        place_.Fill(number, DenseStrides(region.box.extent, region.element_bytes), parcel.data(),
                    static_cast<int64_t>(at) - static_cast<int64_t>(stretch.begin), stretch));
    at += stretch.bytes();
  }
  return OkStatus();
}

}  // namespace cairn
