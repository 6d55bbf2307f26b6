// CheckpointSource: the arrays of one checkpoint of Cairn. Every block that is read is compared with its checksum.
#ifndef CAIRN_RUNTIME_INTEROP_CHECKPOINT_SOURCE_H_
#define CAIRN_RUNTIME_INTEROP_CHECKPOINT_SOURCE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/saved_layout.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/retention.h"
#include "runtime/catalog/run_directory.h"
#include "runtime/interop/array_source.h"
#include "runtime/restore/reader.h"

namespace cairn {

class CheckpointSource : public ArraySource {
 public:
  // Keeps the checkpoint from being pruned while this object lives and is read from. Errors as LoadCheckpoint's.
  static Result<std::unique_ptr<CheckpointSource>> Open(const RunDirectory& dir, const std::string& name);

  const LoadedCheckpoint& checkpoint() const { return loaded_; }

  const std::vector<ArraySpec>& arrays() const override { return loaded_.index.saved.arrays; }
  std::vector<std::string> others() const override;
  Status Read(uint32_t array, const Box& box, std::span<std::byte> out) override;

 private:
  CheckpointSource(HeldLease lease, LoadedCheckpoint loaded);

  HeldLease lease_;
  LoadedCheckpoint loaded_;
  std::vector<SourceFile> files_;
  std::optional<SavedIndex> saved_;  // of loaded_, once it is where it stays
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_CHECKPOINT_SOURCE_H_
