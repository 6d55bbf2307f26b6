// MetricsText: runs in the text format of Prometheus. Counters are of a whole run: they go on when the next life begins. Pure.
#ifndef CAIRN_RUNTIME_COMMAND_METRICS_TEXT_H_
#define CAIRN_RUNTIME_COMMAND_METRICS_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "runtime/catalog/chronicle.h"

namespace cairn {

struct RunMetrics {
  std::string dir;  // the label of everything of this run
  bool finished = false;
  Chronicle chronicle;  // with every life's end (GuessEnd)
};

// docs/monitoring.md lists all metrics.
std::string WriteMetrics(const std::vector<RunMetrics>& runs);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_METRICS_TEXT_H_
