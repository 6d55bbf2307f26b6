// Partner copies: every staged snapshot once more in the memory of another node of the job (CAIRN_PARTNER).
//
//  1. The ranks of each node are paired with those of the next one, in a ring of the nodes (PartnersOf). A rank whose partner I am is my ward.
//  2. In cairn_restore, after its own slots, each rank takes memory in its local tier for one snapshot of each ward (PartnerSlots).
//  3. Each sends the slot that it has staged to its partner, on a bulk connection of this copy's own, while it is drained: kBegin with the
//     sidecar, the images in parts, the record, kEnd.
//  4. kBegin makes the copy's sidecar FILLING; the images go straight into their mappings; kEnd makes it STAGED, and the leader is told.
//  5. A later life finds the copy among the leftovers of its node, as one more slot of the ward's rank (staging/leftovers.h).
// While a copy is replaced it is void: a node that is lost just then costs what is newer than the last durable checkpoint. A sender whose snapshot
// has become durable, or that takes the next one, gives up what it still sends. One that finds no partner, no room or a broken connection goes
// without a copy of that snapshot.
#ifndef CAIRN_RUNTIME_SESSION_PARTNER_H_
#define CAIRN_RUNTIME_SESSION_PARTNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planner/save_plan.h"
#include "runtime/bulk/address_book.h"
#include "runtime/bulk/message.h"
#include "runtime/bulk/receiver.h"
#include "runtime/session/worker.h"
#include "runtime/staging/image_plan.h"
#include "runtime/staging/local_tier.h"
#include "runtime/staging/mapping.h"
#include "runtime/staging/sidecar.h"

namespace cairn {

inline constexpr char kPartnerPurpose[] = "partner";
// So begin the names of the files of a copy, in the folder of the rank that holds it; then comes the ward's rank.
inline constexpr std::string_view kPartnerSlot = "partner";
inline constexpr uint32_t kPartnerPartBytes = 4 << 20;  // the longest payload

enum PartnerMessage : uint16_t {  // BulkSubject::type; ids[0] is the save's id
  kPartnerBegin = 1,              // payload: a sidecar of state STAGED
  kPartnerImage = 2,              // ids[1]: which image; ids[2]: offset of the payload in it
  kPartnerRecord = 3,             // payload: the next part of the slot's record
  kPartnerEnd = 4,
};

// By rank: its partner, −1 = none (there is one node only). `nodes`: by rank, the node's name. Pure; a ward's partner is never on its node, and
// the wards of a node are spread evenly over the ranks of the next.
std::vector<int> PartnersOf(const std::vector<std::string>& nodes);

// What a rank keeps for its wards. Thread: the receiver's alone, after Make.
class PartnerSlots {
 public:
  // `held`: a ward's copy is complete. kOutOfMemory and the tier's errors.
  static Result<PartnerSlots> Make(const LocalTier& tier, const Layout& layout, const SavePlan& plan,
                                   const std::vector<uint32_t>& wards, const MayTakeFunction& may_take,
                                   std::function<void(uint32_t ward, uint64_t save_id)> held);

  // For BulkEvents. kInvalid for what no ward of ours may send now.
  Result<std::span<std::byte>> Place(int from, const BulkSubject& subject, uint32_t bytes);
  Status Take(int from, const BulkSubject& subject, std::span<const std::byte> payload);

 private:
  struct Copy {
    ImagePlan plan;
    std::vector<Mapping> images;
    Mapping sidecar;
    // Of the copy that is being received.
    uint64_t save_id = 0;  // 0 = none is
    std::string record;
  };
  explicit PartnerSlots(const LocalTier& tier) : tier_(&tier) {}
  Result<Copy*> Receiving(int from, const BulkSubject& subject);

  const LocalTier* tier_;
  std::map<uint32_t, Copy> copies_;  // by ward
  std::vector<std::byte> buffer_;    // of what is no image
  std::function<void(uint32_t ward, uint64_t save_id)> held_;
};

// A slot as it is sent.
struct OutgoingCopy {
  SnapshotId id;
  std::vector<std::span<const std::byte>> images;
  std::span<const std::byte> record;
};

// Both ends of one rank, for the life of its session: the receiver's thread and a thread that sends.
class PartnerLink {
 public:
  // `book` outlives it. `say`: for the log, on the receiver's thread.
  static Result<std::unique_ptr<PartnerLink>> Make(const BulkIdentity& self, AddressBook* book, int partner,
                                                   PartnerSlots wards,
                                                   const std::function<void(const std::string& line)>& say);
  ~PartnerLink();  // gives up what is under way

  // Sends in the background, then calls `done` there: errors as BulkSender::Send, kCancelled after GiveUp. What `copy` points at stays until then.
  void Send(const OutgoingCopy& copy, std::function<void(const Status& status)> done);
  // What is being sent ends at once, wherever it waits. Not beside Send.
  void GiveUp();

 private:
  PartnerLink(const BulkIdentity& self, AddressBook* book, int partner, PartnerSlots wards,
              std::shared_ptr<Breaker> breaker, const std::function<void(const std::string&)>& say);

  const BulkIdentity self_;
  AddressBook* const book_;
  const int partner_;
  const std::shared_ptr<Breaker> breaker_;
  std::shared_ptr<Breaker> copy_;  // of the latest copy
  PartnerSlots wards_;             // the receiver's thread's
  std::unique_ptr<BulkReceiver> receiver_;
  Worker worker_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_PARTNER_H_
