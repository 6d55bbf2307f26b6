// Saver: one member's own side of a save: its plans, its slots, the copy at the boundary and the drain.
//
// When it ends, its folder in the local tier goes, unless the newest snapshot in it is complete on all ranks and not known to be durable: then it is
// left for the next life, as by a process that was killed.
//
// A drain that does not return when its save has ended (the file system hangs) keeps its slot, and nothing else: the next save takes another one, and
// is drained by a thread of its own, if the file system has answered the leader. Where ranks fill images together (memory_slot.h) the next save waits, too: all must take the
// slots of the same number, and only the first one knows of the drain.
//
// Made in cairn_restore, when the merged state is known. Acquire, Begin…, Enter…, …Ended, Settle, Cancel, Hurry, busy, stuck and seen under the boundary's mutex; Copy by whichever
// thread takes the snapshot, while the state stands still; Drain on the worker of the slot.
#ifndef CAIRN_RUNTIME_SESSION_SAVER_H_
#define CAIRN_RUNTIME_SESSION_SAVER_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/session/items.h"
#include "runtime/session/metrics.h"
#include "runtime/session/partner.h"
#include "runtime/session/protocol.h"
#include "runtime/session/state.h"
#include "runtime/staging/drain.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/mapping.h"
#include "runtime/staging/slot_record.h"
#include "runtime/staging/snapshot.h"
#include "runtime/staging/staging.h"

namespace cairn {

class Saver {
 public:
  struct Options {
    uint32_t rank = 0;
    int ranks_on_node = 1;
    uint32_t epoch = 0;
    std::string claim;  // of the life, as Opened::claim
    std::string run_directory;
    std::string run_id;
    bool keeps_layout = false;  // one rank of each node: its folder holds the layout
    LocalTierOptions tier;
    uint64_t local_limit = 0;  // bytes that the images of the node's ranks may take; 0 = no limit
    int copy_threads = 1;
    FileMode mode;
    std::map<std::string, std::string> settings;  // that were given: Manifest::settings
    Writer writer = Writer::kAuto;
    uint64_t drain_limit = 0;   // bytes per second and rank; 0 = none
    std::string shared_folder;  // where the first rank of this one's writer, another one, has its images
  };

  // `items` must outlive the saver. An error leaves the job without saves: kOutOfMemory and the tier's errors, with the remedy.
  static Result<std::unique_ptr<Saver>> Make(const Options& options, const State& state, const Items& items);

  ~Saver();

  const std::string& folder() const {
    return staging_.tier.path();
  }  // of this rank in the local tier; "" = none
  const std::vector<std::string>& notes() const { return staging_.notes; }
  const std::string& warning() const { return staging_.warning; }

  // kUnavailable naming an item whose memory the program has taken back: there is nothing to copy.
  Status HaveMemory() const;
  int slots() const { return staging_.pool.size(); }
  // There is no slot as long as the drain or the partner's copy of a save that has ended has not returned.
  bool busy() const;
  // The boundary of a save that ended more than `patience` ago, and whose drain has not returned.
  std::optional<int64_t> stuck(std::chrono::nanoseconds patience) const;
  // A slot for this snapshot; kBusy as above.
  Status Acquire(uint64_t save_id, int64_t boundary);
  // The stall: copies arrays, blobs and the encoded metrics into the acquired slot. What is stable until a fence may be left to FinishCopy, which any
  // thread may call then; the slot is not staged before.
  Status Copy(const SnapshotStamp& stamp, std::string_view metrics);
  bool copies_late() const { return snapshot_.late(); }
  Status FinishCopy();
  // All members have staged: the slot is complete, and its worker will drain it. The slot's number.
  int BeginDrain();
  // A save that has got a slot.
  struct Save;
  // The worker has come to this drain, and calls Drain and DrainEnded next. Null: the save has ended before, and there is nothing to do.
  Save* EnterDrain(uint64_t save_id);
  // Writes the slot's files into `directory`.
  Result<MemberRecord> Drain(Save& save, const std::string& directory);
  // The drain has returned. `save` is gone if it has ended.
  void DrainEnded(Save& save);

  // Memory for copies of other ranks' snapshots (partner.h), in this saver's tier. kUnavailable where that does not outlive the process.
  Result<PartnerSlots> MakePartnerSlots(const Layout& layout, const std::vector<uint32_t>& wards,
                                        std::function<void(uint32_t ward, uint64_t save_id)> held) const;
  // The acquired slot, staged, for its partner. It stays as it is until PartnerCopyEnded.
  OutgoingCopy BeginPartnerCopy();
  void PartnerCopyEnded();

  // The save has ended. Cancels a drain that still runs: the slot is free when that and a partner's copy have ended. Nothing for a save that
  // got no slot.
  enum class Worth { kNone, kLocal, kDurable };
  void Settle(uint64_t save_id, Worth worth);
  // A copy that writes through, or a drain, is to end soon: the save was dropped, or the process is leaving.
  void Cancel();
  // This drain and all later ones: as fast as they can.
  void Hurry();
  // How far the drain is; nothing while there is none.
  std::optional<DrainSeen> seen() const;

 private:
  // Of one slot.
  struct Record {
    Mapping memory;
    SlotRecord record;
  };

  Saver(Options options, bool alone, const Items& items, Staging staging, ImagePlan images,
        SnapshotPlan snapshot, std::vector<Record> records, Hash128 layout, uint32_t world_size,
        std::vector<std::pair<size_t, size_t>> pieces, std::optional<Device::Pins> pins);
  void LeaveIfSettled();
  void Free(const Save& save);
  std::unique_ptr<DrainControl> NewControl() const;
  const SlotRecord& RecordOf(const Save& save) const;

  const Options options_;
  const bool alone_;  // it fills its images without other ranks
  const Items& items_;
  Staging staging_;
  const std::optional<Device::Pins>
      pins_;  // of the slots' images, where device memory is copied to them; goes before them
  const ImagePlan images_;
  const SnapshotPlan snapshot_;
  const Hash128 layout_;
  const uint32_t world_size_;
  const std::vector<std::pair<size_t, size_t>> pieces_;  // by piece number: (array, piece) in Items
  std::vector<void*> pointers_;                          // by piece number, resolved at the boundary
  std::vector<Record> records_;                          // by slot
  std::unique_ptr<Save> current_;
  std::vector<std::unique_ptr<Save>> left_;  // ended, and their drains have not returned
  bool only_here_ = false;                   // the newest complete snapshot is not known to be durable
  struct Mark {
    uint64_t written = 0;
    int64_t at_ns = 0;
  } pace_from_;  // where the drain stood when its present pace began
  bool hurried_ = false;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_SAVER_H_
