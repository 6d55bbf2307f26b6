// Which store a path means: "s3://bucket/key" is an object of that bucket, everything else is a file. file.h, readable.h and the drain hand over to
// the bucket's store; nobody else needs to know.
//
// A process that may use objects says once, at its start, how a bucket is opened. Each is opened at its first use and kept.
//
// Any thread.
#ifndef CAIRN_RUNTIME_IO_STORES_H_
#define CAIRN_RUNTIME_IO_STORES_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/io/object_store.h"

namespace cairn {

inline constexpr std::string_view kObjectScheme = "s3://";

inline bool IsObjectPath(std::string_view path) { return path.starts_with(kObjectScheme); }

using OpenStoreFunction = std::function<Result<std::shared_ptr<ObjectStore>>(const std::string& bucket)>;

// Forgets the stores that are open.
void SetOpenStore(OpenStoreFunction open);

struct ObjectPlace {
  std::shared_ptr<ObjectStore> store;
  std::string key;  // slashes at its ends and doubled ones left out; "" = the bucket itself

  // Of what lies below it, taken for a folder.
  std::string prefix() const { return key.empty() ? "" : key + "/"; }
};

// Of a path that IsObjectPath. kInvalid for one that cannot be a key of Cairn's (object_store.h), or has no bucket; kUnavailable where this process
// cannot use objects; the errors of opening the bucket, each time anew.
Result<ObjectPlace> PlaceOf(const std::string& path);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_STORES_H_
