// An oracle for plans that works element by element and shares no code with the planner: it carries out a
// save into buffers and a load out of them, and compares every element with what it must be.
#ifndef CAIRN_TESTS_PLANNER_ORACLE_H_
#define CAIRN_TESTS_PLANNER_ORACLE_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/load_plan.h"
#include "planner/save_plan.h"
#include "tests/planner/random_layout.h"

namespace cairn {

// Calls `visit` with the coordinates of every element of the box, in row-major order.
void ForEachElement(const Box& box, const std::function<void(const Dims&)>& visit);

// The row-major position of an element in an array of this shape.
int64_t FlatIndex(const Dims& shape, const Dims& at);

// The bytes that an element has in every test: they depend on the array and the element's place in it alone.
std::string ElementBytes(const std::vector<ArraySpec>& arrays, uint32_t array, const Dims& at);

struct SavedFiles {
  SavedLayout layout;
  std::vector<std::string> files;  // contents, by number
  std::vector<SavedBox> boxes;     // all of them, also those that the layout does not list
};

// Carries out a save as the writers would: each takes the elements from its own piece. `pieces` lists every piece, also
// where the plan was made from rules. Stray bytes stand between the boxes, and every box is listed. Reports with
// ADD_FAILURE a box that its writer does not hold, and a broken rule of save_plan.h.
SavedFiles Save(Random& random, const Layout& pieces, const SavePlan& plan);

// The same save as it lies on disk, each file behind a header of some length: boxes lie where the plan says, and those
// of arrays with a rule in `ruled` are not listed.
SavedFiles SaveByRule(Random& random, const Layout& pieces, const Layout& ruled, const SavePlan& plan);

// Carries out a load and compares. Reports with ADD_FAILURE an element that is missing, wrong or copied
// twice, a copy that leaves its range, ranges that overlap, and counts of bytes that are not true.
void LoadAndCompare(const SavedFiles& saved, const std::vector<WantedBox>& wanted, const LoadPlan& plan,
                    const LoadPlanOptions& options);

// What `rank` holds in a layout without rules, as the boxes that it wants.
std::vector<WantedBox> WantedBy(const Layout& layout, uint32_t rank);

}  // namespace cairn

#endif  // CAIRN_TESTS_PLANNER_ORACLE_H_
