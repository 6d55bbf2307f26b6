// LeadRescue: makes a snapshot durable that an earlier life of the run staged on all ranks and did not bring to disk. A rescue, step by step:
//
//   1. Each node's first rank lists the slots that dead ranks of this job left there (staging/leftovers.h); the others report their node.
//   2. The restore's leader looks for the newest snapshot that is complete, on the run's line (its life's epoch: catalog/checkpoints.cc) and
//      newer than the newest good checkpoint (session/local_snapshot.h).
//   3. It has the layout under which the snapshot was taken read from one of the nodes, and makes an attempt of this epoch.
//   4. The ranks of the nodes that hold them write the images into it, as in a drain, and report the records (session/rescue.h). Where a rank's
//      own images are damaged, its partner's copy is written instead; where there is none, the snapshot is given up.
//   5. It is committed like any other save. Its parent, and so this epoch's, is the checkpoint before it; the parent is published only then:
//      an epoch that died before has published nothing, is passed by, and the snapshot is still on the line.
//   6. All load it as the newest checkpoint. What lies in the memory of a node is read there and handed on to the others.
//   7. When the restore has ended well, on whatever checkpoint, and the parent is published, the leftovers of the run are off the line or
//      durable: every node removes its own. If anything stops before, they stay for the next life.
//
// Steps 3 to 5 are done here, the others by RestoreLeader. Blocking; the clerk's thread.
#ifndef CAIRN_RUNTIME_SESSION_RESCUE_LEADER_H_
#define CAIRN_RUNTIME_SESSION_RESCUE_LEADER_H_

#include <string>
#include <vector>

#include "runtime/session/keeper.h"
#include "runtime/session/local_snapshot.h"
#include "runtime/session/members.h"

namespace cairn {

// A snapshot that this life made durable before it loaded it.
struct Rescued {
  std::string name;     // the checkpoint that it has become, of this epoch
  std::string parent;   // the checkpoint before it; "" = none
  LocalSnapshot local;  // without the copies that were found to be damaged
};

// `inventories` are the members', by rank; the keeper owns the directory. kDamage: an image or the layout is not what was saved. Anything
// else proves nothing: the snapshot stays where it is.
Result<Rescued> LeadRescue(const LocalSnapshot& local, const std::string& parent,
                           const std::vector<Inventory>& inventories, Members& members, Keeper& keeper);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_SESSION_RESCUE_LEADER_H_
