// BulkIdentity: who a member is on the data plane. A connection proves it to both ends by the control plane's handshake (runtime/control/handshake.h),
// with a key of its own that is derived from the step's token for this purpose and no other.
#ifndef CAIRN_RUNTIME_BULK_IDENTITY_H_
#define CAIRN_RUNTIME_BULK_IDENTITY_H_

#include <chrono>
#include <string>

#include "runtime/control/secret.h"

namespace cairn {

struct BulkIdentity {
  int rank = 0;
  std::string key;      // <job>.<step>.<restart count>
  std::string session;  // its name
  Secret token;         // of the step
  // What the connections are for ("restore 1"). Only senders and receivers of the same purpose meet: bytes of an attempt that was given up
  // never reach the next one.
  std::string purpose;

  std::chrono::milliseconds stall_bound{
      30000};  // no byte moves for so long while some are due: the other end is stuck

  Secret BulkToken() const { return token.Derive("cairn bulk v1 " + purpose); }
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_BULK_IDENTITY_H_
