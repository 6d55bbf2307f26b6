#include "runtime/io/stores.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

namespace cairn {
namespace {

constexpr size_t kMaxKeyBytes = 1023;

struct Stores {
  std::mutex mutex;
  // Guarded by mutex.
  OpenStoreFunction open;
  std::map<std::string, std::shared_ptr<ObjectStore>> by_bucket;
};

Stores& TheStores() {
  static Stores* const stores = new Stores;  // never destroyed: threads may use it while the process ends
  return *stores;
}

}  // namespace

void SetOpenStore(OpenStoreFunction open) {
  Stores& stores = TheStores();
  const std::lock_guard lock(stores.mutex);
  stores.open = std::move(open);
  stores.by_bucket.clear();
}

Result<ObjectPlace> PlaceOf(const std::string& path) {
  const std::string rest = path.substr(std::min(kObjectScheme.size(), path.size()));
  const std::string bucket = rest.substr(0, rest.find('/'));
  if (bucket.empty()) return Status(Code::kInvalid, path + ": no bucket is named; s3://BUCKET/PREFIX");
  ObjectPlace place;
  place.key = std::filesystem::path(rest.substr(bucket.size())).lexically_normal().string();
  place.key.erase(0, place.key.find_first_not_of('/'));
  while (place.key.ends_with('/')) place.key.pop_back();
  const bool printable =
      std::all_of(path.begin(), path.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (!printable || place.key.size() > kMaxKeyBytes) {
    return Status(Code::kInvalid, path + ": keys of objects are ASCII without spaces, of at most " +
                                      std::to_string(kMaxKeyBytes) + " bytes here");
  }
  Stores& stores = TheStores();
  const std::lock_guard lock(stores.mutex);
  std::shared_ptr<ObjectStore>& store = stores.by_bucket[bucket];
  if (!store) {
    if (!stores.open) return Status(Code::kUnavailable, path + ": this program cannot use object stores");
    CAIRN_ASSIGN_OR_RETURN(store, stores.open(bucket));
  }
  place.store = store;
  return place;
}

}  // namespace cairn
