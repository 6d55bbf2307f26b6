#include "runtime/session/drain_meter.h"

#include <algorithm>
#include <set>

namespace cairn {

void DrainMeter::OnSeen(int rank, const DrainSeen& seen) {
  if (seen.save_id < save_id_) return;
  if (seen.save_id > save_id_) seen_.clear();
  save_id_ = seen.save_id;
  seen_[rank] = seen;
}

std::optional<DrainMeter::Reading> DrainMeter::Read(uint64_t save_id) const {
  if (save_id != save_id_ || seen_.empty()) return std::nullopt;
  Reading reading;
  reading.ranks = static_cast<int>(seen_.size());
  double longest = 0;  // seconds
  bool known = true;
  std::set<std::string> writers;
  for (const auto& [rank, seen] : seen_) {
    reading.bytes += seen.bytes;
    reading.written += seen.written;
    if (!seen.writer.empty()) writers.insert(seen.writer);
    if (seen.written >= seen.bytes) continue;
    reading.bytes_per_second += seen.bytes_per_second;
    if (seen.bytes_per_second > 0) {
      longest = std::max(longest, static_cast<double>(seen.bytes - seen.written) / seen.bytes_per_second);
    } else {
      known = false;
    }
  }
  if (known)
    reading.left =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(longest));
  for (const std::string& writer : writers) reading.writer += (reading.writer.empty() ? "" : ", ") + writer;
  return reading;
}

}  // namespace cairn
