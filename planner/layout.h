// Layout: which pieces of which arrays every rank holds. The planner's input for a save, and its description
// of a wanted load.
//
// Arrays here are in C order: a Fortran array enters with its dimensions reversed (its order is kept as
// metadata in the index).
#ifndef CAIRN_PLANNER_LAYOUT_H_
#define CAIRN_PLANNER_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/base/box.h"
#include "planner/base/dtype.h"
#include "planner/base/status.h"
#include "planner/grid.h"

namespace cairn {

struct ArraySpec {
  std::string name;  // the FQN; unique in a layout
  DType dtype = DType::kF32;
  bool fortran = false;  // the application's memory order; `shape` is already reversed when set
  Dims shape;            // global, elements

  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

// One box of one array in one rank's memory. `ordinal` is its position among the pieces of this array that this rank
// registered and that are not empty.
struct Piece {
  uint32_t array = 0;  // position in Layout::arrays
  uint32_t rank = 0;
  uint32_t ordinal = 0;
  Box box;
};

// An array's pieces are given by a rule (grid.h) where it is regular, else one by one. Neither names empty pieces.
struct Layout {
  uint32_t world_size = 0;
  std::vector<ArraySpec> arrays;
  std::vector<Piece> pieces;  // of the arrays without a rule; grouped by array, then by rank, then by ordinal
  GridTable grids = {};
};

// Below, kInvalid names the array and says what is wrong with it.

// A name, no negative extent, and a size in bytes that fits int64_t.
Status CheckArray(const ArraySpec& array);

// A box of the array's rank inside its shape.
Status CheckBox(const ArraySpec& array, const Box& box);

// What every save plan relies on: arrays and boxes as above, names unique, ranks below the world size, pieces
// in the order that Layout asks for, rules that are possible and have their array's shape, and no element of any array
// without a piece.
Status ValidateLayout(const Layout& layout);

}  // namespace cairn

#endif  // CAIRN_PLANNER_LAYOUT_H_
