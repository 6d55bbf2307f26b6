#include "runtime/interop/checkpoint_source.h"

#include "planner/load_plan.h"
#include "runtime/formats/names.h"
#include "runtime/staging/strided_copy.h"

namespace cairn {

Result<std::unique_ptr<CheckpointSource>> CheckpointSource::Open(const RunDirectory& dir,
                                                                 const std::string& name) {
  HeldLease lease(dir, name);
  CAIRN_ASSIGN_OR_RETURN(LoadedCheckpoint loaded, LoadCheckpoint(dir, name));
  std::unique_ptr<CheckpointSource> source(new CheckpointSource(std::move(lease), std::move(loaded)));
  const std::string& path = source->loaded_.path;
  auto saved = SavedIndex::Make(source->loaded_.index.saved);
  if (!saved.ok()) return saved.status().Annotate(path);
  source->saved_.emplace(*std::move(saved));
  for (uint32_t i = 0; i < source->arrays().size(); ++i) {
    const auto parts = source->saved_->BoxesIn(i, Box::Whole(source->arrays()[i].shape));
    if (!parts.ok()) return parts.status().Annotate(path);
  }
  return source;
}

CheckpointSource::CheckpointSource(HeldLease lease, LoadedCheckpoint loaded)
    : lease_(std::move(lease)), loaded_(std::move(loaded)) {
  for (const ShardRecord& file : loaded_.index.files) {
    files_.push_back({loaded_.path + "/" + names::Shard(file.number),
                      loaded_.path + "/" + names::Sums(file.number), file.bytes, file.sums_root});
  }
}

std::vector<std::string> CheckpointSource::others() const {
  std::vector<std::string> lines;
  for (const BlobItem& item : loaded_.blobs.items) lines.push_back("blob " + item.name);
  return lines;
}

Status CheckpointSource::Read(uint32_t array, const Box& box, std::span<std::byte> out) {
  lease_.Keep(std::chrono::steady_clock::now());
  const int64_t element_bytes = DTypeBytes(arrays()[array].dtype);
  CAIRN_ASSIGN_OR_RETURN(const LoadPlan plan, PlanLoad(*saved_, {{array, box}}));
  return ExecuteLoad(plan, files_,
                     {{out.data(), box, DenseStrides(box.extent, element_bytes), element_bytes}})
      .status();
}

}  // namespace cairn
