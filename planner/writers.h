// Writers: which ranks write files together. A writer is one rank, or several that fill one set of files between them.
// What it writes is what one rank with all of their pieces would: the save plan is made for the layout of the writers
// (save_plan.h), and readers need not know.
//
// 1. A writer of several ranks holds their pieces, equal ones once. Two that lie side by side and make up one box are
//    joined, as long as there are any; dimensions from the last to the first, again and again. Its ordinals follow the
//    order of the boxes.
// 2. What several of its ranks hold they copy by turns, large boxes by some rows each (CopiesOf).
#ifndef CAIRN_PLANNER_WRITERS_H_
#define CAIRN_PLANNER_WRITERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/layout.h"

namespace cairn {

// A piece of a writer, and the ranks' pieces that make it up.
struct WriterPiece {
  struct Holder {
    uint32_t rank = 0;
    uint32_t ordinal = 0;  // of the rank's piece
  };
  struct Part {
    Box box;
    std::vector<Holder> holders;  // by rank, each once
  };
  Box box;
  std::vector<Part> parts;  // disjoint
};

class Writers {
 public:
  // Writers are numbered from 0 by their lowest ranks: writer_of[r] is that of rank r. Empty: each rank is one. A rank that is
  // one keeps its pieces as they are. The layout stays the caller's, does not change and outlives this. kInvalid when a number is
  // not as it must be, and where ValidateLayout refuses the layout.
  static Result<Writers> Make(const Layout& layout, std::vector<uint32_t> writer_of = {});

  // Of the writers: its world size is their number.
  const Layout& layout() const { return joined_ ? *joined_ : *ranks_; }
  const Layout& layout_of_ranks() const { return *ranks_; }

  uint32_t Of(uint32_t rank) const { return writer_of_.empty() ? rank : writer_of_[rank]; }
  std::vector<uint32_t> RanksOf(uint32_t writer) const;  // increasing

 private:
  friend class WriterPieces;
  Writers(const Layout& layout, std::vector<uint32_t> writer_of)
      : ranks_(&layout), writer_of_(std::move(writer_of)) {}

  const Layout* ranks_;
  std::vector<uint32_t> writer_of_;
  std::optional<Layout> joined_;
};

// The pieces of one writer. One thread at a time: most arrays share theirs, which are found at first use.
class WriterPieces {
 public:
  // `writers` outlives it.
  WriterPieces(const Writers& writers, uint32_t writer);

  const std::vector<WriterPiece>& Of(uint32_t array);  // by ordinal

 private:
  std::vector<WriterPiece> Find(uint32_t array) const;

  const Writers& writers_;
  const std::vector<uint32_t> ranks_;
  std::map<uint32_t, std::vector<WriterPiece>> by_rule_, by_array_;
};

// What one of `holders` ranks copies of `rows` rows that all of them hold: none, or [first, first + count). `bytes`: of all
// rows; no part is smaller than about `min_split_bytes`. `turn` moves on who begins.
struct CopiedRows {
  int64_t first = 0;
  int64_t count = 0;
};
CopiedRows RowsOfHolder(uint64_t holder, uint64_t holders, uint64_t turn, int64_t rows, uint64_t bytes,
                        uint64_t min_split_bytes);

// By rank, as Writers::Make wants it: on each node its ranks, in their order, are divided among writers, so that there are
// `files` writers in all, or one for each node where there are more nodes. `nodes[r]` is where rank r is. Empty when
// every rank would be a writer.
std::vector<uint32_t> ShareOutFiles(std::span<const std::string> nodes, uint64_t files);

}  // namespace cairn

#endif  // CAIRN_PLANNER_WRITERS_H_
