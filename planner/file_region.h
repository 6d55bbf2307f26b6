// FileRegion: a box of elements where it lies in a file, inside a dense saved box. Its bytes in row-major order are its *stream*: what travels when
// it is handed on. As the file is walked from its start, the stream comes in order, so each block of the file holds one range of it.
#ifndef CAIRN_PLANNER_FILE_REGION_H_
#define CAIRN_PLANNER_FILE_REGION_H_

#include <cstdint>

#include "planner/saved_layout.h"

namespace cairn {

struct FileRegion {
  uint32_t array = 0;   // position in SavedLayout::arrays
  uint32_t file = 0;    // position in the checkpoint's files
  uint64_t offset = 0;  // of its first element, bytes from the start of the file
  Box box;              // global coordinates, not empty
  Dims stride;          // bytes from one row to the next in the file, by dimension
  int64_t element_bytes = 0;

  // `box` lies inside the saved box.
  static FileRegion Make(const SavedBox& saved, const Box& box, int64_t element_bytes);

  uint64_t bytes() const { return static_cast<uint64_t>(box.elements() * element_bytes); }
  uint64_t end() const;  // behind its last element, bytes from the start of the file

  // How many bytes of the stream lie before this byte of the file.
  uint64_t BytesBefore(uint64_t file_offset) const;
};

}  // namespace cairn

#endif  // CAIRN_PLANNER_FILE_REGION_H_
