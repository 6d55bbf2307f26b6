// Status and Result: how every fallible function of Cairn reports. Nothing throws or allocates on success.
//
// The codes are a small closed set; what a caller decides (retry, fall back, stop) depends on the code alone,
// what the user reads is the message: what happened, to which thing, why, and what to do. Context is added on
// the way up with `Annotate`.
#ifndef CAIRN_PLANNER_BASE_STATUS_H_
#define CAIRN_PLANNER_BASE_STATUS_H_

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cairn {

enum class Code {
  kOk = 0,
  kInvalid,      // the caller's arguments or settings are wrong
  kMismatch,     // the program's items and the checkpoint's differ; never marks a checkpoint
  kDamage,       // checksum or structure fault that a second read reproduces, truncated or missing file
  kNotFound,     // the thing does not exist
  kExists,       // the thing exists and must not
  kBusy,         // another live holder owns the thing
  kFenced,       // a newer epoch owns the directory: this life must not write any more
  kPermission,   // EACCES, EPERM, EROFS
  kNoSpace,      // ENOSPC, EDQUOT
  kIo,           // EIO, ESTALE and other faults of the store that do not prove damage
  kTimeout,      // a bound has passed
  kUnavailable,  // a peer or service is not there
  kCancelled,    // given up on purpose
  kOutOfMemory,  // memory for the operation is not to be had
  kInternal,     // a fault of Cairn itself
};

// "damage", "no space", …: for log lines and JSON. Stable.
std::string_view CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same code with "context: " put before the message. OK stays OK.
  Status Annotate(std::string_view context) const;

  // From errno, with the code that fits it: `what` says which call on which path ("fsync /d/shard-1").
  static Status FromErrno(int error, std::string_view what);

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

inline Status OkStatus() { return {}; }

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }  // NOLINT

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace cairn

#define CAIRN_RETURN_IF_ERROR(expr)                \
  do {                                             \
    ::cairn::Status cairn_status_ = (expr);        \
    if (!cairn_status_.ok()) return cairn_status_; \
  } while (0)

#define CAIRN_CONCAT_INNER_(a, b) a##b
#define CAIRN_CONCAT_(a, b) CAIRN_CONCAT_INNER_(a, b)
#define CAIRN_ASSIGN_OR_RETURN(lhs, expr) \
  CAIRN_ASSIGN_OR_RETURN_(CAIRN_CONCAT_(cairn_result_, __LINE__), lhs, expr)
#define CAIRN_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return tmp.status();           \
  lhs = *std::move(tmp)

#endif  // CAIRN_PLANNER_BASE_STATUS_H_
