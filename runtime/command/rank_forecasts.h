// What a restore on another number of ranks would do, rank by rank, and its picture: for `cairn plan` and `cairn report`.
#ifndef CAIRN_RUNTIME_COMMAND_RANK_FORECASTS_H_
#define CAIRN_RUNTIME_COMMAND_RANK_FORECASTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "planner/restore_forecast.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/command/layout_file.h"

namespace cairn {

// Each as it would plan it in the restore. Pure, on several threads of its own; `on_progress` is called by one at a time.
Result<std::vector<RestoreForecast>> ForecastRanks(const Index& index, const WantedLayout& wanted,
                                                   const std::function<void(uint32_t done)>& on_progress);

// The picture of plan_picture.h.
std::string DrawRestore(const LoadedCheckpoint& loaded, const std::vector<RestoreForecast>& ranks);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_RANK_FORECASTS_H_
