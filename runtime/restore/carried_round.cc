#include "runtime/restore/carried_round.h"

#include "runtime/restore/patience.h"

namespace cairn {

Status CarriedRound::Meet() const {
  ready();
  for (Patience patience;; patience.Wait()) {
    const Status broken = round->status();  // asked first: all may have been ready before somebody failed
    if (all_ready()) return OkStatus();
    CAIRN_RETURN_IF_ERROR(broken);
    if (carrier != nullptr) carrier->Progress();
  }
}

}  // namespace cairn
