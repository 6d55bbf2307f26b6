// SaveStream: how the ranks that hold the same pieces share the writing of them.
//
// All pieces that one set of ranks (a *group* of R replicas) has in common are laid end to end, in the order of arrays
// and then of pieces: a stream of T bytes. It is cut into S segments of equal length, S = R, or fewer where segments
// would be shorter than min_split_bytes (m): S = max(1, min(R, T / m)). Segment s belongs to replica floor(s R / S), so
// that a few writers stand far apart and thus on different nodes. The border before segment s lies at byte
// floor(s T / S) of the stream, moved so that it cuts no row of dimension 0 and no part of a piece comes out shorter
// than about m: RowAt.
#ifndef CAIRN_PLANNER_SAVE_STREAM_H_
#define CAIRN_PLANNER_SAVE_STREAM_H_

#include <cstdint>
#include <optional>

#include "planner/base/box.h"

namespace cairn {

inline constexpr uint64_t kMinSplitBytes = 1 << 20;

class SaveStream {
 public:
  SaveStream(uint64_t total_bytes, uint32_t replicas, uint64_t min_split_bytes);

  uint32_t segments() const { return segments_; }
  uint32_t WriterOf(uint32_t segment) const;                  // a replica
  std::optional<uint32_t> SegmentOf(uint32_t replica) const;  // nothing: it writes nothing
  uint32_t SegmentAt(uint64_t byte) const;  // the segment before whose end, unmoved, this byte lies; byte < T

  uint64_t BorderBefore(uint32_t segment) const;  // unmoved; 0 … S

  // A piece in the stream. Not empty.
  struct Place {
    uint64_t begin = 0;  // byte of the stream
    uint64_t bytes = 0;
    int64_t rows = 1;
  };
  // The row of the piece to which the border at this byte moves: 0 and place.rows where it lies outside.
  //   d = border - begin, b = bytes: 0 if d <= 0; rows if d >= b; in between
  //   - b < 2 m: the nearer end (0 if 2 d < b),
  //   - 0 if d < m; rows if b - d < m; else (d + row / 2) / row, where row = b / rows bytes.
  int64_t RowAt(const Place& place, uint64_t border) const;

 private:
  const uint64_t total_bytes_;
  const uint32_t replicas_;
  const uint64_t min_split_bytes_;
  const uint32_t segments_;
};

// Dimension 0, or the one row of a scalar.
inline int64_t RowsOf(const Box& piece) { return piece.rank() == 0 ? 1 : piece.extent[0]; }
inline Box RowsOfPiece(Box piece, int64_t first, int64_t rows) {
  if (piece.rank() == 0) return piece;
  piece.offset[0] += first;
  piece.extent[0] = rows;
  return piece;
}

}  // namespace cairn

#endif  // CAIRN_PLANNER_SAVE_STREAM_H_
