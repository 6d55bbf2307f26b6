#include "planner/restore_forecast.h"

#include <algorithm>
#include <array>

namespace cairn {

RestoreForecast ForecastOf(const ExchangePlan& plan, const SavedIndex& saved, uint32_t rank,
                           std::span<const uint64_t> file_bytes, uint64_t block_bytes) {
  RestoreForecast forecast;
  // A piece's array is one of the layout's; a region's, of the checkpoint's. Every piece has a region.
  std::vector<int64_t> element_bytes(plan.pieces.size(), 0);
  for (size_t r = 0; r < plan.regions.size(); ++r) {
    for (const uint32_t piece : plan.pieces_of[r])
      element_bytes[piece] = DTypeBytes(saved.layout().arrays[plan.regions[r].array].dtype);
  }
  for (size_t p = 0; p < plan.pieces.size(); ++p)
    forecast.state_bytes += static_cast<uint64_t>(plan.pieces[p].box.elements() * element_bytes[p]);

  forecast.needed_bytes = plan.needed_bytes;
  uint64_t largest_block = 0, largest_packed = 0;
  for (const ExchangePlan::Read& read : plan.reads) {
    const uint64_t begin = read.block * block_bytes;
    const uint64_t bytes = std::min(block_bytes, file_bytes[read.file] - begin);
    ++forecast.blocks;
    forecast.read_bytes += bytes;
    forecast.read_of_file[read.file] += bytes;
    largest_block = std::max(largest_block, bytes);
    for (const uint32_t region : read.own)
      forecast.kept_from[rank] +=
          plan.regions[region].BytesBefore(begin + block_bytes) - plan.regions[region].BytesBefore(begin);
    for (const ExchangePlan::Handover& handover : read.handovers) {
      forecast.sent_bytes += handover.bytes * handover.to.size();
      largest_packed = std::max(largest_packed, handover.bytes);
    }
  }
  std::array<uint64_t, 2> largest_received = {0, 0};  // by lane
  for (const ExchangePlan::Receipt& receipt : plan.receipts) {
    forecast.received_bytes += receipt.bytes;
    forecast.sent_bytes += receipt.bytes * receipt.to.size();
    forecast.kept_from[receipt.reader] += receipt.bytes;
    uint64_t& largest = largest_received[receipt.reader < rank ? 0 : 1];
    largest = std::max(largest, receipt.bytes);
  }
  forecast.buffer_bytes = largest_block + largest_packed + largest_received[0] + largest_received[1];
  return forecast;
}

}  // namespace cairn
