// RestoreShare: one member's part of cairn_restore. It tells the leader what it registered and what lies in its node's memory, obeys the leader's
// orders one after the other (protocol.h; the flow is in docs/design/session.md), and equips the boundary for the saves of this life.
//
// Threads.
//   application   SetMatch, SetPlanner, Run, differences, SavedBlob
//   any           EndTransfers, BeginRound, AbandonRound; never block
#ifndef CAIRN_RUNTIME_SESSION_RESTORE_SHARE_H_
#define CAIRN_RUNTIME_SESSION_RESTORE_SHARE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/bulk/address_book.h"
#include "runtime/bulk/breaker.h"
#include "runtime/bulk/identity.h"
#include "runtime/include/cairn/cairn.h"
#include "runtime/log/log.h"
#include "runtime/restore/carried_round.h"
#include "runtime/restore/mpi_carrier.h"
#include "runtime/session/bootstrap.h"
#include "runtime/session/boundary.h"
#include "runtime/session/items.h"
#include "runtime/session/load_planner.h"
#include "runtime/session/mailbox.h"
#include "runtime/session/matching.h"
#include "runtime/session/partner.h"
#include "runtime/session/protocol.h"
#include "runtime/session/saver.h"
#include "runtime/session/state.h"
#include "runtime/staging/local_tier.h"

namespace cairn {

class RestoreShare {
 public:
  struct Links {  // all outlive it
    Log* log = nullptr;
    Mailbox* mailbox = nullptr;
    AddressBook* addresses = nullptr;
    Boundary* boundary = nullptr;
    std::function<void(uint16_t type, std::string payload)> send;  // to the leader
  };

  // `name`: the session's. `items`: what the program registers until Run, which may give tables more room.
  RestoreShare(const Bootstrap& boot, std::string name, Items& items, Links links);

  // Collective; blocks until the leader has said how it ended. `opened`: how cairn_open did. `lead`: called, with what
  // SetMatch said, when this member has said all.
  Result<cairn_report> Run(const Opened& opened, const std::function<void(const MatchOptions& match)>& lead);

  void SetMatch(MatchOptions match) { match_ = std::move(match); }  // before Run; see cairn_set_load
  void SetPlanner(const cairn_load_planner& calls) { planner_calls_ = calls; }  // before Run
  const std::vector<ItemDifference>& differences() const {
    return differences_;
  }  // of the checkpoint that was loaded

  // Bytes of a merged blob, of a member of the life that saved; they live as long as this.
  Status SavedBlob(const std::string& name, int member, std::string_view* bytes) const;

  void EndTransfers(const Status& why);                // for good: a member is gone, or this one leaves
  void BeginRound(uint32_t round) { begun_ = round; }  // all members are ready in it
  void AbandonRound(uint32_t round);                   // another member has failed in it

 private:
  Result<cairn_report> Follow();
  Result<Mailbox::Letter> NextOrder();
  void PlaceTables();
  void CutOutputs(const OutputLengths& saved);
  void CountItems(cairn_report* report);
  void Report(const Outcome& outcome);
  Outcome Answer(const Order& order);
  Status Obey(const Order& order, Outcome* outcome);
  Status Prepare(const Order& order, Outcome* outcome);
  std::unique_ptr<PartnerLink> LinkPartner(const Saver& saver, const Order& order);
  Status Plan(const Order& order, Outcome* outcome);
  Status PlanForAll(const Order& order, Outcome* outcome);
  Status Connect(const Order& order);
  Status Load(const Order& order, Outcome* outcome);
  Result<std::shared_ptr<Breaker>> JoinRound(const Order& order);
  CarriedRound Carry(const Order& order, const std::shared_ptr<Breaker>& round);
  LocalTierOptions Tier() const;
  BulkIdentity Bulk(const std::string& purpose) const;  // this member on the data plane

  const Bootstrap& boot_;
  const std::string name_;
  Items& items_;
  const Links links_;

  // The application's.
  Opened opened_;
  MatchOptions match_;
  std::optional<cairn_load_planner> planner_calls_;
  std::unique_ptr<LoadPlanner> planner_;     // since kPlan; during Run
  std::vector<ItemDifference> differences_;  // of the checkpoint that was loaded last
  std::string run_id_;                       // since Prepare
  State state_;                              // what all members registered; during Run
  std::string wanted_;                       // the last of kind kWanted; during Run
  Order near_, foreign_;                     // the last of kinds kNear and kForeign; during Run
  std::unique_ptr<MpiCarrier> carrier_;      // since kConnect; during Run, unless that fails
  std::string saved_blobs_of_;               // path of the checkpoint that was offered last, and
  MergedBlobs saved_blobs_;                  // its merged ones

  std::atomic<uint32_t> begun_{0};  // the round in which all were ready, since this member last was

  // Guarded by mutex_.
  std::mutex mutex_;
  std::shared_ptr<Breaker> life_;   // of all transfers
  std::shared_ptr<Breaker> round_;  // of the present round of loading; a part of it
  uint32_t abandoned_ = 0;          // rounds up to this one were given up
  Status transfers_over_;           // not OK: why no transfer can come to its end any more
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_RESTORE_SHARE_H_
