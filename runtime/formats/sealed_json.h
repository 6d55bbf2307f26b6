// Sealed JSON: the form of every small text file in a run's directory. docs/design/formats.md, section 6.
//
// An object whose first members say what it is ("cairn": kind, "version") and whose last one is a checksum of all bytes before it.
// Internal to the formats and the catalog; callers that only pass a sealed text on need no JSON library.
#ifndef CAIRN_RUNTIME_FORMATS_SEALED_JSON_H_
#define CAIRN_RUNTIME_FORMATS_SEALED_JSON_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/io/hash.h"

namespace cairn {

// kInvalid when a string of `members` is no UTF-8.
Result<std::string> SealJson(std::string_view kind, const nlohmann::ordered_json& members,
                             uint64_t version = 1);

// The members; kDamage when the checksum, the kind or the form is wrong, kMismatch for a version above `known` (newer_version.h).
Result<nlohmann::ordered_json> UnsealJson(std::string_view kind, std::string_view text, uint64_t known = 1);

// Typed access to the members of an object. A member that is absent or of another type gives the type's zero, and makes status() the
// kDamage of the first such member. Members that are not asked for are ignored, so that later versions can add some.
class JsonFields {
 public:
  // `object` must outlive this. `what` begins the message.
  JsonFields(const nlohmann::ordered_json& object, std::string_view what) : object_(object), what_(what) {}

  std::string String(const char* name);
  bool Bool(const char* name);
  int64_t Signed(const char* name);
  uint64_t Unsigned(const char* name, uint64_t max = UINT64_MAX);
  Hash128 Hash(const char* name);
  const nlohmann::ordered_json& Array(const char* name);
  const nlohmann::ordered_json& Object(const char* name);

  const Status& status() const { return status_; }

 private:
  const nlohmann::ordered_json* Find(const char* name);
  void Fail(const char* name, std::string_view expected);

  const nlohmann::ordered_json& object_;
  std::string what_;
  Status status_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_FORMATS_SEALED_JSON_H_
