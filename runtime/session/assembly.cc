#include "runtime/session/assembly.h"

#include <utility>

#include "runtime/session/metrics.h"
#include "runtime/session/outputs.h"

namespace cairn {

Result<Blobs> Assemble(const std::vector<MemberRecord>& records, const State& state, Index* index,
                       Manifest* manifest, std::set<std::string>* left_out) {
  std::vector<ShardRecord> shards;
  Blobs blobs;
  for (const BlobSpec& spec : state.blobs) {
    blobs.items.push_back({spec.name, static_cast<BlobPolicy>(spec.policy), {}});
    blobs.items.back().by_rank.resize(records.size());
  }
  for (size_t rank = 0; rank < records.size(); ++rank) {
    shards.insert(shards.end(), records[rank].shards.begin(), records[rank].shards.end());
    for (BlobItem& blob : blobs.items) {
      const auto it = records[rank].blobs.find(blob.name);
      if (it != records[rank].blobs.end()) blob.by_rank[rank] = it->second;
    }
    if (const auto it = records[rank].blobs.find(kMetricsBlob); it != records[rank].blobs.end()) {
      CAIRN_ASSIGN_OR_RETURN(const MetricValues metrics, DecodeMetrics(it->second));
      MergeMetrics(metrics, &manifest->metrics, left_out);
    }
    if (const auto it = records[rank].blobs.find(std::string(kOutputsBlob));
        it != records[rank].blobs.end()) {
      CAIRN_ASSIGN_OR_RETURN(OutputLengths outputs, DecodeOutputs(it->second));
      manifest->outputs.merge(outputs);
    }
  }
  CAIRN_RETURN_IF_ERROR(FillRecords(*index, shards));
  manifest->world_size = state.layout.world_size;
  return blobs;
}

}  // namespace cairn
