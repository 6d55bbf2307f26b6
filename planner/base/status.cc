#include "planner/base/status.h"

#include <cerrno>
#include <cstring>

namespace cairn {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalid:
      return "invalid";
    case Code::kMismatch:
      return "mismatch";
    case Code::kDamage:
      return "damage";
    case Code::kNotFound:
      return "not found";
    case Code::kExists:
      return "exists";
    case Code::kBusy:
      return "busy";
    case Code::kFenced:
      return "fenced";
    case Code::kPermission:
      return "permission";
    case Code::kNoSpace:
      return "no space";
    case Code::kIo:
      return "i/o";
    case Code::kTimeout:
      return "timeout";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kCancelled:
      return "cancelled";
    case Code::kOutOfMemory:
      return "out of memory";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

Status Status::Annotate(std::string_view context) const {
  if (ok()) return *this;
  return {code_, std::string(context) + ": " + message_};
}

Status Status::FromErrno(int error, std::string_view what) {
  Code code = Code::kIo;
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::kPermission;
      break;
    case ENOSPC:
    case EDQUOT:
      code = Code::kNoSpace;
      break;
    case ENOENT:
    case ENOTDIR:
      code = Code::kNotFound;
      break;
    case EEXIST:
    case ENOTEMPTY:
      code = Code::kExists;
      break;
    case ENOMEM:
      code = Code::kOutOfMemory;
      break;
    case ETIMEDOUT:
      code = Code::kTimeout;
      break;
    case EINVAL:
    case ENAMETOOLONG:
      code = Code::kInvalid;
      break;
    default:
      break;
  }
  return {code, std::string(what) + ": " + std::strerror(error)};
}

}  // namespace cairn
