#include "runtime/session/rescue.h"

#include <span>
#include <string>

#include "planner/save_plan.h"
#include "runtime/formats/names.h"
#include "runtime/session/state.h"

namespace cairn {
namespace {

Hash128 ContentOf(const std::vector<ShardRecord>& shards) {
  Hasher128 content;
  for (const ShardRecord& shard : shards) content.Update(std::as_bytes(std::span(shard.sums_root.bytes)));
  return content.Finish();
}

}  // namespace

Result<MemberRecord> WriteLeft(const RescueSource& source, const std::string& directory,
                               const ImagePlan& images, const Leftovers& leftovers, FileMode mode,
                               Writer writer, DrainControl& control) {
  CAIRN_ASSIGN_OR_RETURN(const Leftovers::Adopted adopted,
                         leftovers.Adopt(source.folder, source.slot, images));
  MemberRecord record;
  const DrainOptions options{
      .directory = directory, .mode = mode, .make_engine = [writer] { return MakeWriteEngine(writer); }};
  CAIRN_ASSIGN_OR_RETURN(record.shards, Drain(*adopted.slot, images, options, control));
  if (adopted.sidecar.state == SlotState::kHashed && ContentOf(record.shards) != adopted.sidecar.content) {
    for (const ShardRecord& shard : record.shards) {
      (void)RemoveFile(directory + "/" + names::Shard(shard.number));
      (void)RemoveFile(directory + "/" + names::Sums(shard.number));
    }
    return Status(Code::kDamage, "the images of rank " + std::to_string(source.rank) + " in " +
                                     source.folder + " are not what was saved: their checksum differs");
  }
  record.blobs = adopted.record.blobs;
  return record;
}

Status RescueShare(const Order& order, const Leftovers& leftovers, FileMode mode, Writer writer,
                   Outcome* outcome) {
  if (order.sources.empty()) return OkStatus();
  CAIRN_ASSIGN_OR_RETURN(const State state, DecodeState(order.state));
  CAIRN_ASSIGN_OR_RETURN(const Writers writers, Writers::Make(state.layout, state.writer_of));
  CAIRN_ASSIGN_OR_RETURN(const SavePlan plan, PlanSave(writers.layout()));
  for (const RescueSource& source : order.sources) {
    CAIRN_ASSIGN_OR_RETURN(const ImagePlan images, PlanImages(writers, plan, source.rank));
    DrainControl control;
    control.Hurry();  // nothing else runs on the node before the restore has ended
    const auto record = WriteLeft(source, order.path, images, leftovers, mode, writer, control);
    if (record.ok()) {
      outcome->records.emplace(source.rank, EncodeSessionMessage(*record));
    } else if (record.status().code() == Code::kDamage) {
      outcome->damaged.emplace(source.rank, record.status().message());
    } else {
      return record.status();
    }
  }
  return OkStatus();
}

}  // namespace cairn
