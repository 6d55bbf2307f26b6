// BoxIndex: the boxes of one array, ordered so that those which meet a given box are found without looking at
// all of them.
#ifndef CAIRN_PLANNER_BOX_INDEX_H_
#define CAIRN_PLANNER_BOX_INDEX_H_

#include <cstdint>
#include <vector>

#include "planner/base/box.h"

namespace cairn {

class BoxIndex {
 public:
  // The boxes stay the caller's and outlive the index; they are known by their position in `boxes`. All have
  // the same rank.
  explicit BoxIndex(const std::vector<const Box*>& boxes);

  struct Part {
    uint32_t box;  // position in the constructor's argument
    Box region;    // inside that box
  };
  struct Cover {
    std::vector<Part> parts;  // disjoint
    std::vector<Box> holes;   // disjoint, sorted; what no box covers
  };

  // Cuts `target` into parts, each inside one of the boxes. An element that lies in several boxes is always
  // taken from the same one, whatever the target: the first of them in the index's order.
  Cover CoverOf(const Box& target) const;

  // The boxes that have an element in common with `target`, in no order.
  std::vector<uint32_t> Meeting(const Box& target) const;

 private:
  struct Entry {
    const Box* box;
    uint32_t id;
  };
  int64_t Begin(const Box& box) const { return dim_ < 0 ? 0 : box.offset[dim_]; }
  int64_t End(const Box& box) const { return dim_ < 0 ? 1 : box.offset[dim_] + box.extent[dim_]; }

  std::vector<Entry> entries_;  // not empty boxes, by Begin()
  int dim_ = -1;         // the dimension that the search uses: the most finely divided one; -1 for scalars
  int64_t longest_ = 1;  // the greatest End() - Begin()
};

}  // namespace cairn

#endif  // CAIRN_PLANNER_BOX_INDEX_H_
