// What every function of cairn.h is wrapped in: no exception leaves, and the text of an error stays in the thread.
#ifndef CAIRN_RUNTIME_ABI_GUARD_H_
#define CAIRN_RUNTIME_ABI_GUARD_H_

#include <string>

#include "planner/base/status.h"
#include "runtime/include/cairn/cairn.h"
#include "runtime/thrown.h"

namespace cairn::abi {

inline std::string& LastError() {
  thread_local std::string text;
  return text;
}

inline int ToAbi(Code code) {
  switch (code) {
    case Code::kOk:
      return CAIRN_OK;
    case Code::kInvalid:
      return CAIRN_E_INVALID;
    case Code::kMismatch:
      return CAIRN_E_MISMATCH;
    case Code::kDamage:
      return CAIRN_E_DAMAGE;
    case Code::kBusy:
    case Code::kFenced:
      return CAIRN_E_BUSY;
    case Code::kNotFound:
    case Code::kExists:
    case Code::kPermission:
    case Code::kNoSpace:
    case Code::kIo:
      return CAIRN_E_IO;
    case Code::kTimeout:
      return CAIRN_E_TIMEOUT;
    case Code::kUnavailable:
    case Code::kCancelled:
      return CAIRN_E_PEER;
    case Code::kOutOfMemory:
      return CAIRN_E_NO_MEMORY;
    case Code::kInternal:
      return CAIRN_E_INTERNAL;
  }
  return CAIRN_E_INTERNAL;
}

inline int Report(const Status& status) {
  LastError() = status.message();
  return ToAbi(status.code());
}

inline int WrongState(const char* what) {
  LastError() = what;
  return CAIRN_E_STATE;
}

template <typename Body>
int Guard(Body&& body) {
  try {
    return body();
  } catch (...) {
    return Report(Thrown());
  }
}

}  // namespace cairn::abi

#endif  // CAIRN_RUNTIME_ABI_GUARD_H_
