// The picture of `cairn plan --svg`: three columns, the files, the ranks that read them, and the ranks that keep what was read; between them
// bands as wide as there are bytes. Pure.
#ifndef CAIRN_RUNTIME_COMMAND_PLAN_PICTURE_H_
#define CAIRN_RUNTIME_COMMAND_PLAN_PICTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/restore_forecast.h"

namespace cairn {

struct PlanPicture {
  std::string title, subtitle;
  std::vector<uint32_t> file_numbers;  // as in the files' names
  const std::vector<RestoreForecast>* ranks = nullptr;
};

// A whole SVG document, which refers to nothing outside. Files and ranks that are many are drawn in groups of neighbours.
std::string DrawPlan(const PlanPicture& picture);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_PLAN_PICTURE_H_
