#include "runtime/session/rescue.h"

#include <span>

#include "planner/save_plan.h"
#include "runtime/session/state.h"

namespace cairn {
namespace {

Hash128 ContentOf(const std::vector<ShardRecord>& shards) {
  Hasher128 content;
  for (const ShardRecord& shard : shards) content.Update(std::as_bytes(std::span(shard.sums_root.bytes)));
  return content.Finish();
}

}  // namespace

Result<std::map<uint32_t, std::string>> RescueShare(const Order& order, const Leftovers& leftovers,
                                                    FileMode mode, Writer writer) {
  std::map<uint32_t, std::string> records;
  if (order.sources.empty()) return records;
  CAIRN_ASSIGN_OR_RETURN(const State state, DecodeState(order.state));
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(state.layout));
  for (const RescueSource& source : order.sources) {
    CAIRN_ASSIGN_OR_RETURN(const ImagePlan images, PlanImages(state.layout, plan, source.rank));
    CAIRN_ASSIGN_OR_RETURN(const Leftovers::Adopted adopted,
                           leftovers.Adopt(source.folder, source.slot, images));
    DrainControl control;
    control.Hurry();  // nothing else runs on the node before the restore has ended
    MemberRecord record;
    const DrainOptions options{
        .directory = order.path, .mode = mode, .make_engine = [writer] { return MakeWriteEngine(writer); }};
    CAIRN_ASSIGN_OR_RETURN(record.shards, Drain(*adopted.slot, images, options, control));
    if (adopted.sidecar.state == SlotState::kHashed && ContentOf(record.shards) != adopted.sidecar.content) {
      return Status(Code::kDamage, "the images of rank " + std::to_string(source.rank) + " in " +
                                       source.folder + " are not what was saved: their checksum differs");
    }
    record.blobs = adopted.record.blobs;
    records.emplace(source.rank, EncodeSessionMessage(record));
  }
  return records;
}

}  // namespace cairn
