// Placement: where the bytes of a plan's regions go in the program's memory. Pure but for the copying; any thread. To device memory they go by way of
// buffers (upload.h), nothing straight.
//
// A *stretch* is what a block holds of a region's stream. Where it consists of long runs, each of which lies in one stretch of the file and of the
// memory, it may be read straight to its place; else it is copied there from where it was read or received.
#ifndef CAIRN_RUNTIME_RESTORE_PLACEMENT_H_
#define CAIRN_RUNTIME_RESTORE_PLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planner/exchange_plan.h"
#include "runtime/restore/block_reader.h"
#include "runtime/restore/reader.h"
#include "runtime/restore/upload.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {

// The part of a region that a block holds, as bytes of the region's stream.
struct Stretch {
  Stretch(const FileRegion& region, uint64_t block);
  uint64_t bytes() const { return end - begin; }
  uint64_t begin, end;
};

// From where the block begins to where the region's first element lies: often before the block.
int64_t OriginIn(uint64_t block, const FileRegion& region);

class Placement {
 public:
  // Both outlive it. `direct_run_bytes`: as LoadOptions.
  Placement(const ExchangePlan& plan, const std::vector<Destination>& destinations, uint64_t direct_run_bytes)
      : plan_(plan), destinations_(destinations), direct_run_bytes_(direct_run_bytes) {}

  // kInternal: a region goes where no destination is.
  Status Check() const;

  // Before the first Fill, and after the last one, by one thread: what device memory needs.
  Status Open();
  Status Finish();

  // What of the block can be read straight to its place, and is wanted nowhere else but there or in one gapless parcel. In the block's order.
  struct Direct {
    std::vector<Diversion> diversions;
    std::vector<uint32_t> regions;  // whose stretches these are; increasing
  };
  Direct DirectOf(const ExchangePlan::Read& read) const;

  // The place of a region's stretch in `block`, where it is a single one that lies in memory as in the stream; else nothing.
  std::span<std::byte> PlaceOf(uint32_t region, uint64_t block) const;

  // Puts a stretch of a region into every piece that wants it. `src_origin`: from src to where the region's first element lies or would lie.
  // Fails only where a device does.
  Status Fill(uint32_t region, const Dims& src_stride, const std::byte* src, int64_t src_origin,
              const Stretch& stretch) const;

 private:
  StridedCopy CopyOf(const FileRegion& region, const Dims& src_stride, const Destination& to) const;
  static int64_t OriginAt(const FileRegion& region, const Destination& to);

  const ExchangePlan& plan_;
  const std::vector<Destination>& destinations_;
  const uint64_t direct_run_bytes_;
  std::unique_ptr<Upload> upload_;  // where there is a destination in device memory
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_PLACEMENT_H_
