// MemoryStore: a bucket in memory. FaultyStore: another store, with faults where a test wants them.
#ifndef CAIRN_TESTS_SUPPORT_MEMORY_STORE_H_
#define CAIRN_TESTS_SUPPORT_MEMORY_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/io/object_store.h"

namespace cairn {

// Any thread, as an ObjectStore.
class MemoryStore : public ObjectStore {
 public:
  explicit MemoryStore(uint64_t part_bytes = 5 << 20) : part_bytes_(part_bytes) {}

  Result<std::string> Get(const std::string& key, uint64_t max_bytes) override;
  Status Read(const std::string& key, std::span<const ObjectRange> ranges) override;
  Result<uint64_t> Bytes(const std::string& key) override;
  Status Put(const std::string& key, std::string_view bytes) override;
  Status PutNew(const std::string& key, std::string_view bytes) override;
  Result<std::unique_ptr<ObjectUpload>> Upload(const std::string& key, uint64_t bytes) override;
  Result<std::vector<StoredObject>> List(const std::string& prefix) override;
  Result<std::vector<std::string>> ListFolder(const std::string& prefix) override;
  Status Remove(std::span<const std::string> keys) override;
  Result<std::vector<std::string>> ListUploads(const std::string& prefix) override;
  Status AbortUploads(const std::string& prefix) override;

  // For tests.
  std::map<std::string, std::string> objects() const;
  std::set<std::string> uploads() const;  // keys of those that are neither finished nor given up
  void Flip(const std::string& key, uint64_t offset);

 private:
  class MemoryUpload;
  struct Held {
    std::string key;
    std::map<uint64_t, std::string> parts;
  };

  const uint64_t part_bytes_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, std::string> objects_;
  std::map<int, Held> uploads_;
  int next_upload_ = 0;
};

// Hands on to another store, and asks before each call what shall become of it. Uploads ask as "Upload", "Send" and "Finish"; of
// "Cancel" they tell.
class FaultyStore : public ObjectStore {
 public:
  enum class Fate {
    kPass,
    kFail,        // kUnavailable, and nothing is done
    kLoseAnswer,  // it is done, and kUnavailable
    kMissing,     // kNotFound, and nothing is done
    kTwice,       // PutNew: it is done, the answer is lost, and the second request is told that it exists
  };
  using Decide = std::function<Fate(std::string_view call, const std::string& key)>;

  FaultyStore(std::shared_ptr<ObjectStore> inner, Decide decide)
      : inner_(std::move(inner)), decide_(std::move(decide)) {}

  Result<std::string> Get(const std::string& key, uint64_t max_bytes) override;
  Status Read(const std::string& key, std::span<const ObjectRange> ranges) override;
  Result<uint64_t> Bytes(const std::string& key) override;
  Status Put(const std::string& key, std::string_view bytes) override;
  Status PutNew(const std::string& key, std::string_view bytes) override;
  Result<std::unique_ptr<ObjectUpload>> Upload(const std::string& key, uint64_t bytes) override;
  Result<std::vector<StoredObject>> List(const std::string& prefix) override;
  Result<std::vector<std::string>> ListFolder(const std::string& prefix) override;
  Status Remove(std::span<const std::string> keys) override;
  Result<std::vector<std::string>> ListUploads(const std::string& prefix) override;
  Status AbortUploads(const std::string& prefix) override;

 private:
  class FaultyUpload;
  template <typename Call>
  auto Carry(std::string_view name, const std::string& key, Call call) -> decltype(call());

  const std::shared_ptr<ObjectStore> inner_;
  const Decide decide_;
};

// Every bucket is `store`, while this lives.
class StoreInUse {
 public:
  explicit StoreInUse(std::shared_ptr<ObjectStore> store);
  ~StoreInUse();
  StoreInUse(const StoreInUse&) = delete;
  StoreInUse& operator=(const StoreInUse&) = delete;
};

}  // namespace cairn

#endif  // CAIRN_TESTS_SUPPORT_MEMORY_STORE_H_
