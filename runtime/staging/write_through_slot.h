// WriteThroughSlot: the slot of a rank whose images do not fit into memory even once. What stands in for the memory is a folder of the run's
// directory. The program stands still until its files are written, so the stall is the time that the file system takes.
//
//   1. Fill: <run>/.staging-<claim>-<rank>/ is made, and in it each shard. The program's thread takes the blocks (4 MiB) in turn: copies the
//      block out of the program's memory into a free buffer, and has it hashed and written (block_writer.h, so CAIRN_WRITER and CAIRN_DRAIN_LIMIT
//      hold here as in a drain) while it copies the next ones. The buffers are all the memory that is needed.
//   2. Drain, on a worker, while the program goes on: the shards are made durable, their sums written into the attempt's folder (shard_file.h);
//      rename of each shard into the attempt's folder. The names become durable with the folder's fsync, which the committer makes.
//
// A file in the staging folder means nothing: no reader looks there. A stale writer comes to nothing: the life that took over has renamed the
// attempt's folder, which the rename names by its path, and has removed the staging folders of others. What a dropped save left
// is overwritten by the next; the folder goes with the slot. The local tier has nothing of such a rank, so no restart from there either.
#ifndef CAIRN_RUNTIME_STAGING_WRITE_THROUGH_SLOT_H_
#define CAIRN_RUNTIME_STAGING_WRITE_THROUGH_SLOT_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/io/file.h"
#include "runtime/io/write_engine.h"
#include "runtime/staging/mapping.h"
#include "runtime/staging/shard_file.h"
#include "runtime/staging/slot.h"

namespace cairn {

struct WriteThroughOptions {
  std::string run_directory;  // "" = there is none to write through to
  std::string claim;          // the life's (names::Staging)
  uint32_t rank = 0;
  FileMode mode;       // of the shards
  bool direct = true;  // O_DIRECT where the file system takes it
  Writer writer = Writer::kAuto;
  uint64_t bytes_per_second = 0;  // at most; 0 = no limit
};

class WriteThroughSlot : public Slot {
 public:
  static constexpr int kMaxBuffers = 4;

  // Memory for this many buffers.
  static uint64_t BytesFor(int buffers);

  // Takes the buffers; touches no file.
  static Result<std::unique_ptr<WriteThroughSlot>> Make(const WriteThroughOptions& options, int buffers,
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

  // Bytes a second, for an estimate: writes a little, durably, and removes it. Not more than the limit.
  Result<double> MeasureRate();

 private:
  // Puts the part of a shard that is a block into a buffer.
  using Copy = std::function<void(size_t shard, uint64_t begin, uint64_t end, std::byte* out)>;
  explicit WriteThroughSlot(const WriteThroughOptions& options);
  Result<ShardFile> Create(uint32_t number, uint64_t bytes, NewFiles& files) const;
  Status WriteBlocks(std::vector<ShardFile>& shards, const Copy& copy, uint64_t bytes_per_second,
                     DrainControl& control);

  const WriteThroughOptions options_;
  const std::string folder_;
  const pid_t owner_;
  std::vector<Mapping> buffers_;
  std::vector<ShardFile> shards_;  // of the snapshot, as ImagePlan::images
  alignas(8) std::array<std::byte, kSidecarBytes> sidecar_{};
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_WRITE_THROUGH_SLOT_H_
