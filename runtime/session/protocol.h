// The messages of a session beside the agreement's: opening, restore, signals, leaving, and what a member reports of its files. As values;
// on the wire CBOR in a fabric message of the named type. Decode gives kInternal for anything else. Pure.
#ifndef CAIRN_RUNTIME_SESSION_PROTOCOL_H_
#define CAIRN_RUNTIME_SESSION_PROTOCOL_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/record.h"
#include "runtime/io/hash.h"
#include "runtime/session/matching.h"
#include "runtime/session/outputs.h"
#include "runtime/session/state.h"
#include "runtime/staging/leftovers.h"

namespace cairn {

enum SessionMessage : uint16_t {
  kToLeaderMessage = 1,     // agreement::ToLeader
  kToMemberMessage = 2,     // agreement::ToMember
  kOpenedMessage = 3,       // leader → all
  kShareMessage = 4,        // member → leader: EncodeShare
  kOrderMessage = 5,        // leader → member
  kOutcomeMessage = 6,      // member → leader
  kSignalMessage = 7,       // member → leader: SIGTERM arrived
  kLeaveMessage = 8,        // leader → all
  kBulkAddressMessage = 9,  // member ↔ member: AddressBook
  kInventoryMessage = 10,   // member → leader
  kDrainSeenMessage = 11,   // member → leader: at the begin and the end of its drain, and between
  kHurryMessage = 12,      // leader → all, empty: the job is about to end; drains at full speed from now on
  kHeldMessage = 13,       // member → leader: PartnerHeld
  kTableRoomMessage = 14,  // member → leader: TableRoom
};

// How opening ended, for every member.
struct Opened {
  static constexpr uint16_t kType = kOpenedMessage;
  Status status;       // not OK: cairn_open fails with it
  uint32_t epoch = 0;  // 0 = the directory cannot be owned now; saves will try again
  std::string claim;   // of this life, whether it has an epoch or not (Identity::claim)
};

// What a member found on its node and in its process, before it shares its items.
struct Inventory {
  static constexpr uint16_t kType = kInventoryMessage;
  std::string node;
  Status mpi;                   // whether it can hand on over MPI what it reads: as OfferMpi
  std::vector<LeftSlot> slots;  // of dead ranks; from one member per node
};

// The tables of a member that have room for other numbers of rows than it told before, and for how many.
struct TableRoom {
  static constexpr uint16_t kType = kTableRoomMessage;
  std::map<std::string, int64_t> rows;
};

// A slot that a dead rank left on the node of the member that gets the order.
struct RescueSource {
  std::string folder, slot;  // as in LeftSlot
  uint32_t rank = 0;         // of the life that left it
};

// What each member of the life that saved had in a blob of CAIRN_BLOB_MERGE: by name, then member.
using MergedBlobs = std::map<std::string, std::vector<std::string>>;

// Ranks on one node, and the numbers of the files of which the node's memory has a copy.
struct NearNode {
  std::vector<uint32_t> ranks, files;  // increasing
};

// One step of a restore, from the leader.
struct Order {
  static constexpr uint16_t kType = kOrderMessage;
  enum Kind : uint8_t {
    kLayout,      // `state` is what all members registered, merged: keep it; nothing is reported
    kAskRoom,     // tables may have grown: send TableRoom; nothing else is reported
    kRoom,        // `table_rooms` are those that have changed: keep them; nothing is reported
    kShowLayout,  // report the layout of the folder `path` of this node's local tier
    kRescue,  // write the images of `sources`, saved under the layout `state`, into the attempt's folder `path`; report records
    kNear,  // copies of files of the checkpoint `path` lie in the memory of the nodes `near`: keep it; nothing is reported
    kForeign,  // what `path` names is not Cairn's: its index is `state`, and `files` are that index's files: keep it; nothing is reported
    kPlan,  // the program has a load planner: report a plan for the checkpoint `path`, which differs by `differences` if nobody changes it
    kPlanAll,  // `plans` are those of all members: report them as this member's planner changes them
    kMerged,   // `merged_blobs` of the checkpoint `path`, or their next part: keep it; nothing is reported
    kWanted,  // the program has a load planner: `state` is the layout that all want: keep it; nothing is reported
    kConnect,  // say that you are ready, and when all are make a carrier over MPI for what is handed on in kLoad; then report
    kLoad,     // load the checkpoint `path`, of which `sources` lie on this node too; then report an Outcome
    kCommit,   // all have loaded: have the program's load planner commit what it has resolved, then report
    kGo,       // all ranks are ready in `round`
    kAbandon,  // some rank has failed in `round`: end it; who is still at it reports an Outcome all the same
    kForget,   // nothing that dead ranks of the run `run_id` left is needed any more: remove it, then report
    kPrepare,  // make plans and slots for the saves of this life, then report
    kProceed,  // done: go on after step `step` (nothing was restored when `restored` is false); where `way` is kMpi, free its communicator
    kStop,     // `status` says why; nobody runs on
  };
  Kind kind = kStop;
  Status status;
  std::string state;
  TableRooms table_rooms;  // kRoom
  // EncodePlans. kPlanAll: by rank. kLoad: where the program has a load planner this member's own, joined.
  std::vector<std::string> plans;
  std::string path;
  std::string run_id;
  std::vector<RescueSource> sources;
  std::vector<NearNode> near;
  std::vector<std::string> files;  // kForeign: paths
  std::string
      shared_folder;  // kPrepare: in the local tier of this node, of the rank whose images this one fills, too; "" = it has its own
  int partner = -1;             // kPrepare: who keeps a copy of this rank's snapshots; −1 = nobody
  std::vector<uint32_t> wards;  // kPrepare: the ranks whose partner this one is
  Hash128 index_hash;
  uint32_t round = 0;  // counts what the leader asks of all in a restore
  enum Way : uint8_t {
    kAlone,    // each rank reads all that it needs, and hands nothing on
    kSockets,  // each block is read by one rank, and handed on
    kMpi,      // the same over the carrier of kConnect
  };
  Way way = kSockets;                        // kLoad, kProceed
  std::map<std::string, std::string> blobs;  // this member's own bytes, by name
  std::vector<ItemDifference>
      differences;           // kLoad; items that are not named are loaded from those of their names
  MergedBlobs merged_blobs;  // kMerged
  OutputLengths outputs;     // kProceed: of the checkpoint, when it is this run's own
  bool restored = false;
  int64_t step = 0;
  int64_t label = 0;
  uint32_t world_size_saved = 0;
  bool finished = false;
};

struct Outcome {
  static constexpr uint16_t kType = kOutcomeMessage;
  enum Word : uint8_t {
    kReady,   // this member can go on as soon as all can
    kMoving,  // it is still at it, and gets on; or has failed, if `status` says so
    kOver,    // all the rest is said by this word alone
  };
  Word word = kOver;
  Status status;
  std::string
      warning;  // kPrepare, for the user: saves of this rank cost more than they should, or survive less
  std::string folder;              // kPrepare: of this rank in its node's local tier; "" = none
  uint64_t needed_bytes = 0;       // what the ranks need of the blocks that this one read, each byte once
  uint64_t read_bytes = 0;         // whole blocks
  uint64_t near_bytes = 0;         // of these, from copies in the memory of the nodes
  std::string layout;              // kShowLayout
  std::vector<std::string> plans;  // kPlan: this member's; kPlanAll: by rank
  // kRescue, by rank of that life: an encoded MemberRecord each; or why the images are not what was saved, and nothing of them was kept.
  std::map<uint32_t, std::string> records, damaged;
};

// A copy of a rank's snapshot is complete in the memory of its partner.
struct PartnerHeld {
  static constexpr uint16_t kType = kHeldMessage;
  uint64_t save_id = 0;
  uint32_t ward = 0;
};

struct SignalSeen {
  static constexpr uint16_t kType = kSignalMessage;
  int32_t signo = 0;
  bool from_slurm = false;
};

struct LeaveOrder {
  static constexpr uint16_t kType = kLeaveMessage;
  enum Kind : uint8_t {
    kTerminate,  // SIGTERM's own effect, here and in the shielded processes
    kStay,       // wait to be killed; the program's own SIGTERM handler, if it has one, runs now
    kExit,       // leave with `exit_code`
  };
  Kind kind = kStay;
  int32_t exit_code = 0;
};

// How far a member is with its part of a save.
struct DrainSeen {
  static constexpr uint16_t kType = kDrainSeenMessage;
  uint64_t save_id = 0;
  uint64_t bytes = 0;  // in all
  uint64_t written = 0;
  double bytes_per_second =
      0;               // at its present pace: from the begin, or from when it was hurried; 0 = not known yet
  std::string writer;  // WriteEngine::name()
};

// agreement::Record::record: what a member knows of its part of a save.
struct MemberRecord {
  std::vector<ShardRecord> shards;
  int32_t slot = 0;  // the number of the slot that was filled: the same in all ranks of a writer
  std::map<std::string, std::string> blobs;
  int64_t stall_ns = 0;  // the program's thread stood still for the copy
  int64_t drain_ns = 0;
  // Without what the limit on the drain held back: how long the two would have been in a hurry.
  int64_t hurried_stall_ns = 0;
  int64_t hurried_drain_ns = 0;
};

// Orders of kind kMerged, one at least: all members get the same, in parts that fit a message however many members have saved.
inline constexpr size_t kMergedPartBytes = 4 << 20;
std::vector<Order> TellMerged(const std::string& path, MergedBlobs blobs,
                              size_t part_bytes = kMergedPartBytes);

template <typename T>
std::string EncodeSessionMessage(const T& message);
template <typename T>
Result<T> DecodeSessionMessage(std::string_view payload);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_PROTOCOL_H_
