// The charts of `cairn report`: SVG that takes its colours from the page's classes. However long a run was, a chart has no more elements than
// pixels: what is too narrow to be told apart is drawn as one. Pure.
#ifndef CAIRN_RUNTIME_COMMAND_REPORT_CHARTS_H_
#define CAIRN_RUNTIME_COMMAND_REPORT_CHARTS_H_

#include <functional>
#include <string>
#include <vector>

#include "runtime/catalog/chronicle.h"
#include "runtime/command/markup.h"

namespace cairn {

// "1 234 567", for people; its spaces do not break.
std::string Grouped(int64_t number);

// "good", "told", "bad", "open": of the classes that colour a life.
std::string ClassOfEnd(const std::string& end);

// Steps over time, with the lives as bands, the saves as points, and the steps that were lost.
Markup DrawTimeline(const Chronicle& chronicle);

// One bar a save, of parts that stand on each other: the median of those that share a bar; pale above it, the greatest.
struct BarChart {
  struct Part {
    std::string css;             // class of its colour
    std::vector<double> values;  // by save
  };
  std::string title;  // read by whoever cannot see it
  std::vector<Part> parts;
  std::vector<size_t> life_begins;  // positions of the first save of each life but the first
  std::function<std::string(double)> format;
};
Markup DrawBars(const BarChart& chart);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_REPORT_CHARTS_H_
