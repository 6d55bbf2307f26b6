#include "tests/support/memory_store.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "runtime/io/stores.h"

namespace cairn {
namespace {

Status Missing(const std::string& key) { return {Code::kNotFound, "memory: there is no object " + key}; }

}  // namespace

class MemoryStore::MemoryUpload : public ObjectUpload {
 public:
  MemoryUpload(MemoryStore& store, int number, uint64_t bytes)
      : store_(store), number_(number), bytes_(bytes) {}
  ~MemoryUpload() override {
    const std::lock_guard lock(store_.mutex_);
    store_.uploads_.erase(number_);
  }

  uint64_t part_bytes() const override { return store_.part_bytes_; }

  Status Send(uint64_t part, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(store_.mutex_);
    if (cancelled_) return {Code::kCancelled, "memory: cancelled"};
    const auto held = store_.uploads_.find(number_);
    if (held == store_.uploads_.end()) return {Code::kNotFound, "memory: no such upload"};
    const uint64_t begin = part * part_bytes();
    if (begin >= bytes_ || bytes.size() != std::min(part_bytes(), bytes_ - begin))
      return {Code::kInvalid, "memory: part " + std::to_string(part) + " has another size"};
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!held->second.parts.emplace(part, text).second)
      return {Code::kInvalid, "memory: part " + std::to_string(part) + " was sent twice"};
    return OkStatus();
  }

  Status Await() override { return OkStatus(); }

  Status Finish() override {
    const std::lock_guard lock(store_.mutex_);
    if (cancelled_) return {Code::kCancelled, "memory: cancelled"};
    const auto held = store_.uploads_.find(number_);
    if (held == store_.uploads_.end()) return {Code::kNotFound, "memory: no such upload"};
    std::string whole;
    for (const auto& [number, text] : held->second.parts) whole += text;
    if (whole.size() != bytes_) return {Code::kInvalid, "memory: parts are missing"};
    store_.objects_[held->second.key] = std::move(whole);
    store_.uploads_.erase(held);
    return OkStatus();
  }

  void Cancel() override { cancelled_ = true; }

 private:
  MemoryStore& store_;
  const int number_;
  const uint64_t bytes_;
  std::atomic<bool> cancelled_{false};
};

Result<std::string> MemoryStore::Get(const std::string& key, uint64_t max_bytes) {
  const std::lock_guard lock(mutex_);
  const auto object = objects_.find(key);
  if (object == objects_.end()) return Missing(key);
  if (object->second.size() > max_bytes) return Status(Code::kDamage, "memory: " + key + " is too long");
  return object->second;
}

Status MemoryStore::Read(const std::string& key, std::span<const ObjectRange> ranges) {
  const std::lock_guard lock(mutex_);
  const auto object = objects_.find(key);
  if (object == objects_.end()) return Missing(key);
  for (const ObjectRange& range : ranges) {
    if (range.offset + range.to.size() > object->second.size())
      return {Code::kDamage, "memory: " + key + " ends at byte " + std::to_string(object->second.size())};
    std::memcpy(range.to.data(), object->second.data() + range.offset, range.to.size());
  }
  return OkStatus();
}

Result<uint64_t> MemoryStore::Bytes(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto object = objects_.find(key);
  if (object == objects_.end()) return Missing(key);
  return uint64_t{object->second.size()};
}

Status MemoryStore::Put(const std::string& key, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  objects_[key] = bytes;
  return OkStatus();
}

Status MemoryStore::PutNew(const std::string& key, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (!objects_.emplace(key, bytes).second) return {Code::kExists, "memory: " + key + " is there"};
  return OkStatus();
}

Result<std::unique_ptr<ObjectUpload>> MemoryStore::Upload(const std::string& key, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const int number = next_upload_++;
  uploads_[number].key = key;
  return std::unique_ptr<ObjectUpload>(new MemoryUpload(*this, number, bytes));
}

Result<std::vector<StoredObject>> MemoryStore::List(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  std::vector<StoredObject> found;
  for (const auto& [key, bytes] : objects_) {
    if (key.starts_with(prefix)) found.push_back({key, bytes.size()});
  }
  return found;
}

Result<std::vector<std::string>> MemoryStore::ListFolder(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  std::set<std::string> names;
  for (const auto& [key, bytes] : objects_) {
    if (!key.starts_with(prefix)) continue;
    const std::string rest = key.substr(prefix.size());
    names.insert(rest.substr(0, rest.find('/')));
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Status MemoryStore::Remove(std::span<const std::string> keys) {
  const std::lock_guard lock(mutex_);
  for (const std::string& key : keys) objects_.erase(key);
  return OkStatus();
}

Result<std::vector<std::string>> MemoryStore::ListUploads(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> keys;
  for (const auto& [number, upload] : uploads_) {
    if (upload.key.starts_with(prefix)) keys.push_back(upload.key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

Status MemoryStore::AbortUploads(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  std::erase_if(uploads_, [&](const auto& upload) { return upload.second.key.starts_with(prefix); });
  return OkStatus();
}

std::map<std::string, std::string> MemoryStore::objects() const {
  const std::lock_guard lock(mutex_);
  return objects_;
}

std::set<std::string> MemoryStore::uploads() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> keys;
  for (const auto& [number, upload] : uploads_) keys.insert(upload.key);
  return keys;
}

void MemoryStore::Flip(const std::string& key, uint64_t offset) {
  const std::lock_guard lock(mutex_);
  objects_.at(key).at(offset) ^= 1;
}

template <typename Call>
auto FaultyStore::Carry(std::string_view name, const std::string& key, Call call) -> decltype(call()) {
  const Status lost(Code::kUnavailable, "a fault of " + std::string(name) + " " + key);
  switch (decide_(name, key)) {
    case Fate::kPass:
      return call();
    case Fate::kFail:
      return lost;
    case Fate::kMissing:
      return Missing(key);
    case Fate::kLoseAnswer:
      static_cast<void>(call());
      return lost;
    case Fate::kTwice:
      static_cast<void>(call());
      return call();
  }
  return lost;
}

class FaultyStore::FaultyUpload : public ObjectUpload {
 public:
  FaultyUpload(FaultyStore& store, std::string key, std::unique_ptr<ObjectUpload> inner)
      : store_(store), key_(std::move(key)), inner_(std::move(inner)) {}

  uint64_t part_bytes() const override { return inner_->part_bytes(); }
  Status Send(uint64_t part, std::span<const std::byte> bytes) override {
    return store_.Carry("Send", key_, [&] { return inner_->Send(part, bytes); });
  }
  Status Await() override { return inner_->Await(); }
  Status Finish() override {
    return store_.Carry("Finish", key_, [&] { return inner_->Finish(); });
  }
  void Cancel() override {
    static_cast<void>(store_.decide_("Cancel", key_));
    inner_->Cancel();
  }

 private:
  FaultyStore& store_;
  const std::string key_;
  const std::unique_ptr<ObjectUpload> inner_;
};

Result<std::string> FaultyStore::Get(const std::string& key, uint64_t max_bytes) {
  return Carry("Get", key, [&] { return inner_->Get(key, max_bytes); });
}
Status FaultyStore::Read(const std::string& key, std::span<const ObjectRange> ranges) {
  return Carry("Read", key, [&] { return inner_->Read(key, ranges); });
}
Result<uint64_t> FaultyStore::Bytes(const std::string& key) {
  return Carry("Bytes", key, [&] { return inner_->Bytes(key); });
}
Status FaultyStore::Put(const std::string& key, std::string_view bytes) {
  return Carry("Put", key, [&] { return inner_->Put(key, bytes); });
}
Status FaultyStore::PutNew(const std::string& key, std::string_view bytes) {
  return Carry("PutNew", key, [&] { return inner_->PutNew(key, bytes); });
}
Result<std::unique_ptr<ObjectUpload>> FaultyStore::Upload(const std::string& key, uint64_t bytes) {
  return Carry("Upload", key, [&]() -> Result<std::unique_ptr<ObjectUpload>> {
    CAIRN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectUpload> upload, inner_->Upload(key, bytes));
    return std::unique_ptr<ObjectUpload>(new FaultyUpload(*this, key, std::move(upload)));
  });
}
Result<std::vector<StoredObject>> FaultyStore::List(const std::string& prefix) {
  return Carry("List", prefix, [&] { return inner_->List(prefix); });
}
Result<std::vector<std::string>> FaultyStore::ListFolder(const std::string& prefix) {
  return Carry("ListFolder", prefix, [&] { return inner_->ListFolder(prefix); });
}
Status FaultyStore::Remove(std::span<const std::string> keys) {
  return Carry("Remove", keys.front(), [&] { return inner_->Remove(keys); });
}
Result<std::vector<std::string>> FaultyStore::ListUploads(const std::string& prefix) {
  return Carry("ListUploads", prefix, [&] { return inner_->ListUploads(prefix); });
}
Status FaultyStore::AbortUploads(const std::string& prefix) {
  return Carry("AbortUploads", prefix, [&] { return inner_->AbortUploads(prefix); });
}

StoreInUse::StoreInUse(std::shared_ptr<ObjectStore> store) {
  SetOpenStore([store = std::move(store)](const std::string&) -> Result<std::shared_ptr<ObjectStore>> {
    return store;
  });
}

StoreInUse::~StoreInUse() { SetOpenStore(nullptr); }

}  // namespace cairn
