// RestoreForecast: what one rank's part of a restore costs, told from its plan. Pure.
#ifndef CAIRN_PLANNER_RESTORE_FORECAST_H_
#define CAIRN_PLANNER_RESTORE_FORECAST_H_

#include <cstdint>
#include <map>
#include <span>

#include "planner/exchange_plan.h"

namespace cairn {

struct RestoreForecast {
  uint64_t state_bytes = 0;     // of its pieces
  uint64_t blocks = 0;          // that it reads
  uint64_t read_bytes = 0;      // of these, whole
  uint64_t needed_bytes = 0;    // of these, what anybody wants
  uint64_t received_bytes = 0;  // from other ranks
  uint64_t sent_bytes = 0;      // to other ranks, what it passes on included
  // While it loads, besides its state: one block, the largest parcel that it packs, and the largest that it gets on each lane.
  uint64_t buffer_bytes = 0;
  std::map<uint32_t, uint64_t> read_of_file;  // read_bytes by file
  std::map<uint32_t, uint64_t> kept_from;     // what it keeps, by the rank that read it; itself included
};

// `file_bytes`: the size of each file of the checkpoint. `block_bytes`: as for the plan.
RestoreForecast ForecastOf(const ExchangePlan& plan, const SavedIndex& saved, uint32_t rank,
                           std::span<const uint64_t> file_bytes, uint64_t block_bytes);

}  // namespace cairn

#endif  // CAIRN_PLANNER_RESTORE_FORECAST_H_
