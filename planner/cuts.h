// Cuts: how one dimension is divided into parts that lie side by side. Run-length coded, so the usual divisions (even,
// ceil with a short tail, the first few one longer) take a run or two at any number of parts.
#ifndef CAIRN_PLANNER_CUTS_H_
#define CAIRN_PLANNER_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

class Cuts {
 public:
  struct Run {
    uint64_t parts = 0;
    uint64_t length = 0;  // elements of each of these parts
    friend bool operator==(const Run&, const Run&) = default;
    friend auto operator<=>(const Run&, const Run&) = default;
  };

  // kInvalid when a number is 0, or the parts do not fit 32 bits, or their elements 63.
  static Result<Cuts> FromRuns(std::span<const Run> runs);
  // Each part's length, greater than 0; at least one part.
  static Cuts FromLengths(std::span<const int64_t> lengths);

  const std::vector<Run>& runs() const { return runs_; }
  uint32_t parts() const { return static_cast<uint32_t>(parts_); }
  int64_t extent() const { return static_cast<int64_t>(extent_); }

  struct Part {
    int64_t offset = 0;
    int64_t extent = 0;
  };
  Part At(uint32_t part) const;            // part < parts()
  uint32_t PartOf(int64_t element) const;  // 0 <= element < extent()

  friend bool operator==(const Cuts& a, const Cuts& b) { return a.runs_ == b.runs_; }
  friend bool operator<(const Cuts& a, const Cuts& b) { return a.runs_ < b.runs_; }

 private:
  struct Begin {
    uint64_t part = 0, element = 0;
  };
  void Append(const Run& run);

  std::vector<Run> runs_;
  std::vector<Begin> begins_;  // by run
  uint64_t parts_ = 0, extent_ = 0;
};

}  // namespace cairn

#endif  // CAIRN_PLANNER_CUTS_H_
