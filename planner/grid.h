// Grid rules: regular layouts in a few numbers, whatever the number of ranks.
//
// Each dimension of the array is cut into parts (Cuts). A piece is one part of every dimension, its *cell* of the grid.
// The ranks form a mesh of axes; where a rank stands on an axis selects the part of one dimension, or nothing: then the
// ranks along the axis are replicas. A rank holds several cells (block-cyclic) where further axes count its own pieces.
//
//     rank    = first_rank + sum of digit * rank_stride    over all axes, 0 <= digit < count
//     part[d] =              sum of digit * part_stride    over the axes whose dim is d
//     ordinal = the digits of the axes with rank_stride 0, the last one counting fastest
//
// Several axes may divide one dimension, in any order of significance. Ranks that no digits give hold nothing.
#ifndef CAIRN_PLANNER_GRID_H_
#define CAIRN_PLANNER_GRID_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/base/box.h"
#include "planner/base/status.h"
#include "planner/cuts.h"

namespace cairn {

inline constexpr size_t kMaxAxes = 16;
inline constexpr uint32_t kNoRule = UINT32_MAX;

struct GridAxis {
  uint32_t count = 0;        // at least 2
  uint32_t rank_stride = 0;  // ranks from one to the next; 0: pieces of the same rank
  uint32_t part_stride = 0;  // parts of `dim` from one to the next; 0 for replicas
  int32_t dim = -1;          // -1: replicas
  friend bool operator==(const GridAxis&, const GridAxis&) = default;
};

struct GridRule {
  uint32_t first_rank = 0;
  std::vector<GridAxis> axes;  // by decreasing rank_stride
  std::vector<uint32_t> cuts;  // by dimension: position in GridTable::cuts
  friend bool operator==(const GridRule&, const GridRule&) = default;
};

// The rules of a layout's regular arrays. Arrays of one rule share it, rules share their cuts.
struct GridTable {
  std::vector<Cuts> cuts;
  std::vector<GridRule> rules;
  std::vector<uint32_t> rule_of;  // by array: position in `rules`, or kNoRule; empty where no array has one

  bool Has(size_t array) const { return array < rule_of.size() && rule_of[array] != kNoRule; }
};

// kInvalid when a rule of the table is impossible with so many ranks, or does not give every cell to some rank.
Status CheckGrids(const GridTable& grids, uint32_t world_size);

// Where one piece stands: a digit for each axis of its rule.
using GridDigits = std::array<uint32_t, kMaxAxes>;

// A cell that meets a box.
struct GridCell {
  GridDigits digits;  // of replica 0
  uint32_t rank = 0;  // of replica 0
  uint32_t ordinal = 0;
  Box box;
  Box region;  // the common part, not empty
};

// One rule of a table that CheckGrids accepts; a view, cheap to make.
class Grid {
 public:
  Grid(const GridTable& table, uint32_t rule) : table_(&table), rule_(&table.rules[rule]) {}

  const GridRule& rule() const { return *rule_; }
  Dims shape() const;
  uint32_t pieces_per_rank() const { return Count(&IsLocal); }
  uint32_t replicas() const { return Count(&IsReplica); }
  uint64_t cells() const;  // different pieces

  // The digits of the rank's piece 0; nothing when it holds none.
  std::optional<GridDigits> DigitsOf(uint32_t rank) const;
  void SetOrdinal(uint32_t ordinal, GridDigits* digits) const { Set(ordinal, &IsLocal, digits); }
  // Replicas of a piece are numbered from 0, by rank.
  void SetReplica(uint32_t replica, GridDigits* digits) const { Set(replica, &IsReplica, digits); }

  uint32_t RankAt(const GridDigits& digits) const;
  uint32_t OrdinalAt(const GridDigits& digits) const { return Get(digits, &IsLocal); }
  uint32_t ReplicaAt(const GridDigits& digits) const { return Get(digits, &IsReplica); }
  Box BoxAt(const GridDigits& digits) const;

  // Every cell that meets the box (inside the shape, not empty).
  std::vector<GridCell> CellsIn(const Box& box) const;

 private:
  using Select = bool (*)(const GridAxis&);
  static bool IsLocal(const GridAxis& axis) { return axis.rank_stride == 0; }
  static bool IsReplica(const GridAxis& axis) { return axis.dim < 0; }
  uint32_t Count(Select select) const;
  uint32_t Get(const GridDigits& digits, Select select) const;
  void Set(uint32_t number, Select select, GridDigits* digits) const;
  GridDigits DigitsAt(const Dims& parts) const;
  const Cuts& CutsOf(int dim) const { return table_->cuts[rule_->cuts[static_cast<size_t>(dim)]]; }

  const GridTable* table_;
  const GridRule* rule_;
};

// The cells of many arrays' boxes. Arrays that share a rule are mostly asked for alike, one after the other: what was found last for each rule
// is kept.
class CellFinder {
 public:
  // The table stays the caller's, does not change and outlives this.
  explicit CellFinder(const GridTable& table) : table_(&table), last_(table.rules.size()) {}

  // Grid::CellsIn; valid until the next question about this rule.
  const std::vector<GridCell>& CellsIn(uint32_t rule, const Box& box);

 private:
  struct Found {
    Box box;
    std::vector<GridCell> cells;  // none before the first question
  };
  const GridTable* table_;
  std::vector<Found> last_;  // by rule
};

// What one rank holds of an array: boxes that are not empty, in the order of their ordinals.
struct RankPieces {
  uint32_t rank = 0;
  std::vector<Box> boxes;
};

// A rule whose cuts are its own.
struct FoundRule {
  uint32_t first_rank = 0;
  std::vector<GridAxis> axes;
  std::vector<Cuts> cuts;  // by dimension
};

// The rule that gives exactly these pieces, if there is one: `holders` by increasing rank, none without boxes, all boxes
// inside `shape`.
std::optional<FoundRule> FindRule(const Dims& shape, std::span<const RankPieces> holders);

}  // namespace cairn

#endif  // CAIRN_PLANNER_GRID_H_
