// CopyPart: a part of a StridedCopy, by bytes of the box's row-major order: what one block of a file has of a box, whatever came before.
#ifndef CAIRN_RUNTIME_RESTORE_STREAM_COPY_H_
#define CAIRN_RUNTIME_RESTORE_STREAM_COPY_H_

#include <cstddef>
#include <cstdint>

#include "runtime/staging/strided_copy.h"

namespace cairn {

// Copies bytes [begin, end) of the box in row-major order. `src_origin` and `dst_origin` say where the box's first element lies, in bytes from
// `src` and `dst`: negative where it lies before them, as long as the part that is copied does not.
void CopyPart(const StridedCopy& copy, const std::byte* src, int64_t src_origin, std::byte* dst,
              int64_t dst_origin, uint64_t begin, uint64_t end);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_STREAM_COPY_H_
