// RemoveAttempt: how a folder of an attempt or checkpoint is taken away. Internal to the catalog; the protocol is in removal.cc.
#ifndef CAIRN_RUNTIME_CATALOG_REMOVAL_H_
#define CAIRN_RUNTIME_CATALOG_REMOVAL_H_

#include <cstdint>
#include <string>

#include "planner/base/status.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

// Whether the folder `name` of the run's directory holds a manifest. kIo and the like where that cannot be told. Of a bucket the list of the folder
// tells, which no other server's "not found" can pass for.
Result<bool> HasManifest(const RunDirectory& dir, const std::string& name);

// Removes an attempt or checkpoint of the run, for the life that holds `epoch`. kFenced when a newer epoch owns the directory, kBusy when a
// reader holds a lease on it: then it is as it was. A folder that is not there is fine.
Status RemoveAttempt(const RunDirectory& dir, uint32_t epoch, const std::string& name);

// The last step of a removal, of a folder that bears such a name (names::ParseRemoved).
Status FinishRemoval(const RunDirectory& dir, const std::string& removed);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_REMOVAL_H_
