// Metrics: what this member's program has measured (cairn_metric), on its way into the manifest.
//
// They travel as one more blob of the member, whose name no item can have: so they are copied at the boundary with everything else, and a
// snapshot that is rescued from memory still has them. One thread.
#ifndef CAIRN_RUNTIME_SESSION_METRICS_H_
#define CAIRN_RUNTIME_SESSION_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/formats/manifest.h"

namespace cairn {

inline constexpr char kMetricsBlob[] = "";
inline constexpr size_t kMaxMetricsBytes = 4096;     // of one member
inline constexpr size_t kMaxMergedMetrics = 10'000;  // of all members; less than 4 MB of the manifest

using MetricValues = std::map<std::string, Manifest::Metric>;

// Any bytes: kDamage for what Metrics cannot have made.
Result<MetricValues> DecodeMetrics(std::string_view bytes);

// Adds the metrics whose names `all` does not have yet, as long as there is room; the names of others to `left_out`. Of two of one name the one that was
// measured later stays, else that of `all`: a member that the snapshot finds in a quiet stretch may not have come to measuring anew.
void MergeMetrics(const MetricValues& more, MetricValues* all, std::set<std::string>* left_out);

class Metrics {
 public:
  // kInvalid for a name that cannot be one, or when all metrics together take more than kMaxMetricsBytes; nothing is changed then.
  Status Set(const std::string& name, const Manifest::Metric& metric);

  // As they stand, encoded. It stays as it is while it is held.
  std::shared_ptr<const std::string> bytes() const { return bytes_; }

 private:
  MetricValues values_;
  std::shared_ptr<const std::string> bytes_ = std::make_shared<const std::string>();
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_METRICS_H_
