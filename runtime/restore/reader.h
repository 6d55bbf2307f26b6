// ExecuteLoad: carries out one rank's LoadPlan: reads, verifies, copies into the program's memory.
//
//   1. Per file, its sums are read and compared with the root that the index gives. A file without sums is not Cairn's: its bytes are taken as
//      they are read.
//   2. The plan's ranges are walked block by block (4 MiB from the file's start). Each block that a range
//      touches is read once, whole, hashed and compared; a block that differs is read again past the page cache, and only then is it damage.
//   3. What the ranges want of the block is copied out while the block is still in the CPU's cache.
// Memory: one block, and the sums of one file. The kernel reads ahead.
//
// Errors: kDamage names file, block and offset: a block or the sums that differ twice, a file that is missing
// or has another size although the checkpoint's manifest is there (looked at again until the attribute-cache
// bound has passed: another client may just have made it). kPermission, kIo (EIO, ESTALE), kOutOfMemory are
// no damage. After an error the destination may be partly written.
#ifndef CAIRN_RUNTIME_RESTORE_READER_H_
#define CAIRN_RUNTIME_RESTORE_READER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "planner/load_plan.h"
#include "runtime/io/hash.h"

namespace cairn {

class Device;

// A file of the checkpoint, as the index describes it. LoadPlan's `file` is a position in the vector of
// these.
struct SourceFile {
  std::string path;
  std::string sums_path;  // "" = there are none
  uint64_t size_bytes = 0;
  Hash128 sums_root;
  std::string
      near;  // a copy in this node's memory: a block that matches there is not read from `path`; "" = none
};

// Where wanted box `i` of the plan goes. Position i in the vector of these belongs to `CopyOut::wanted` i.
struct Destination {
  std::byte* data = nullptr;  // of the box's first element
  Box box;                    // global coordinates
  Dims stride_bytes;          // in the layout's order of dimensions
  int64_t element_bytes = 0;
  const Device* device = nullptr;  // of ExecuteExchange: data is an address of a device
};

struct LoadOptions {
  std::chrono::milliseconds attribute_cache_bound{3000};
  // Of ExecuteExchange. Shorter runs are copied to their place; a rank that hands on less of what it reads does not take memory to share it.
  uint64_t direct_run_bytes = 16 << 10;
  uint64_t share_bytes = 8 << 20;
};

struct LoadStats {
  uint64_t needed_bytes = 0;     // as the plan counts them
  uint64_t read_bytes = 0;       // of shards, whole blocks, second reads included; sums apart
  uint64_t near_bytes = 0;       // of these, from copies near by
  uint64_t blocks_verified = 0;  // none of files without sums
  uint64_t blocks_read_twice = 0;
  double seconds = 0;
};

Result<LoadStats> ExecuteLoad(const LoadPlan& plan, const std::vector<SourceFile>& files,
                              const std::vector<Destination>& destinations, const LoadOptions& options = {});

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_READER_H_
