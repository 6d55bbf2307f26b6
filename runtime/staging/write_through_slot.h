// WriteThroughSlot: the slot of a rank whose images do not fit into memory even once. What stands in for the memory is a folder of the run's
// directory. The program stands still until its files are written, so the stall is the time that the file system takes.
//
//   1. Fill: <run>/.staging-e<epoch>-<rank>.<id>/ is made, and in it each shard. The threads take its blocks (4 MiB) in turn: copy the block
//      out of the program's memory into a buffer of their own, hash it, write it (O_DIRECT where the file system takes it). The buffers are
//      all the memory that is needed.
//   2. Drain, on a worker, while the program goes on: fsync of each shard; its sums into the attempt's folder, fsync; rename of the shard into
//      the attempt's folder. The names become durable with the folder's fsync, which the committer makes.
//
// A file in the staging folder means nothing: no reader looks there. A stale writer comes to nothing: the life that took over has renamed the
// attempt's folder, which the rename names by its path, and has removed the staging folders of older epochs. What a dropped save left
// is overwritten by the next; the folder goes with the slot. The local tier has nothing of such a rank, so no restart from there either.
#ifndef CAIRN_RUNTIME_STAGING_WRITE_THROUGH_SLOT_H_
#define CAIRN_RUNTIME_STAGING_WRITE_THROUGH_SLOT_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/formats/sums.h"
#include "runtime/io/fd.h"
#include "runtime/io/file.h"
#include "runtime/staging/crew.h"
#include "runtime/staging/mapping.h"
#include "runtime/staging/slot.h"

namespace cairn {

struct WriteThroughOptions {
  std::string run_directory;  // "" = there is none to write through to
  uint32_t epoch = 0;
  uint32_t rank = 0;
  FileMode mode;       // of the shards
  bool direct = true;  // O_DIRECT where the file system takes it
};

class WriteThroughSlot : public Slot {
 public:
  static constexpr int kMaxWriters = 4;

  // Memory for this many threads that write.
  static uint64_t BytesFor(int writers);

  // Takes the buffers and starts the threads; touches no file.
  static Result<std::unique_ptr<WriteThroughSlot>> Make(const WriteThroughOptions& options, int writers,
                                                        const MayTakeFunction& may_take);

  ~WriteThroughSlot() override;

  // kCancelled between two blocks after `control.Cancel`; else the errors of the file system, which leave no
  // file behind.
  Status Fill(const ImagePlan& plan, const SnapshotPlan& snapshot, void* const* pieces,
              DrainControl& control) override;
  Result<std::vector<ShardRecord>> Drain(const ImagePlan& plan, const DrainOptions& options,
                                         DrainControl& control) override;
  // Nobody but the pool reads it.
  Sidecar sidecar() override { return Sidecar(sidecar_.data()); }

  // Bytes a second, for an estimate: writes a little, durably, and removes it.
  Result<double> MeasureRate();

 private:
  struct File {
    UniqueFd fd;
    std::string path;
    Sums sums;
  };
  WriteThroughSlot(const WriteThroughOptions& options, int writers);
  Result<File> Create(const std::string& name, uint64_t bytes) const;
  // Calls `copy(begin, end, buffer)` for each block of the file, and writes what it leaves in the buffer.
  template <typename Copy>
  Status WriteBlocks(File& file, const Copy& copy, DrainControl& control);

  const WriteThroughOptions options_;
  const std::string folder_;
  const pid_t owner_;
  std::vector<Mapping> buffers_;  // by member of the crew
  Crew crew_;
  std::vector<File> files_;  // of the snapshot, as ImagePlan::images
  alignas(8) std::array<std::byte, kSidecarBytes> sidecar_{};
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_WRITE_THROUGH_SLOT_H_
