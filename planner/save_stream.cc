#include "planner/save_stream.h"

#include <algorithm>

namespace cairn {
namespace {

uint64_t MulDiv(uint64_t a, uint64_t b, uint64_t divisor) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(static_cast<Wide>(a) * b / divisor);
}

uint32_t CountSegments(uint64_t total_bytes, uint32_t replicas, uint64_t min_split_bytes) {
  return static_cast<uint32_t>(
      std::max<uint64_t>(1, std::min<uint64_t>(replicas, total_bytes / min_split_bytes)));
}

}  // namespace

SaveStream::SaveStream(uint64_t total_bytes, uint32_t replicas, uint64_t min_split_bytes)
    : total_bytes_(total_bytes),
      replicas_(replicas),
      min_split_bytes_(std::max<uint64_t>(1, min_split_bytes)),
      segments_(CountSegments(total_bytes, replicas, min_split_bytes_)) {}

uint32_t SaveStream::WriterOf(uint32_t segment) const {
  return static_cast<uint32_t>(uint64_t{segment} * replicas_ / segments_);
}

std::optional<uint32_t> SaveStream::SegmentOf(uint32_t replica) const {
  const auto segment = static_cast<uint32_t>((uint64_t{replica} * segments_ + replicas_ - 1) / replicas_);
  if (segment >= segments_ || WriterOf(segment) != replica) return std::nullopt;
  return segment;
}

uint32_t SaveStream::SegmentAt(uint64_t byte) const {
  const auto guess = static_cast<uint32_t>(MulDiv(byte, segments_, total_bytes_));
  // floor(s T / S) <= byte may hold for one more.
  return guess + 1 < segments_ && BorderBefore(guess + 1) <= byte ? guess + 1 : guess;
}

uint64_t SaveStream::BorderBefore(uint32_t segment) const { return MulDiv(segment, total_bytes_, segments_); }

int64_t SaveStream::RowAt(const Place& place, uint64_t border) const {
  if (border <= place.begin) return 0;
  const uint64_t d = border - place.begin, b = place.bytes;
  if (d >= b) return place.rows;
  if (b < 2 * min_split_bytes_) return 2 * d < b ? 0 : place.rows;
  if (d < min_split_bytes_) return 0;
  if (b - d < min_split_bytes_) return place.rows;
  const uint64_t row = b / static_cast<uint64_t>(place.rows);
  return static_cast<int64_t>((d + row / 2) / row);
}

}  // namespace cairn
