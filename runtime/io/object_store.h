// ObjectStore: the durable tier where it is no file system but a bucket of objects. runtime/io/file.h hands over to it what it is asked of
// paths that begin with s3://; only the drain and the restore, which move shards, use it directly.
//
// What objects have not, against files: no rename, no append, no folders (a folder is there when an object below it is), no fsync (what was
// put is durable, and read as such by everybody at once).
//
// A key is the part of the path after the bucket, without a slash at its begin: "runs/a/RUN". Keys of Cairn are ASCII and below 1,024 bytes.
//
// Threads: every call may be made from any thread, and blocks it; none may be made from the training path or a loop thread. Each call ends:
// a request that makes no progress, or is refused for a while, is made again after a pause until the store's deadline has passed.
// Errors: kNotFound, kExists, kPermission (the message says which credentials), kNoSpace (quota), kTimeout, kUnavailable, kIo, kDamage (the
// answer is not what its length or checksum promise), kInvalid (no such bucket, another region); messages name the endpoint, bucket and key.
#ifndef CAIRN_RUNTIME_IO_OBJECT_STORE_H_
#define CAIRN_RUNTIME_IO_OBJECT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

struct StoredObject {
  std::string key;
  uint64_t bytes = 0;

  friend bool operator==(const StoredObject&, const StoredObject&) = default;
};

struct ObjectRange {
  uint64_t offset = 0;
  std::span<std::byte> to;
};

// One object that is written in parts, several at a time. One thread at a time, but for Cancel. Nothing can be seen of it before Finish; the
// destructor gives up what is not finished, and with it, unless it was cancelled or the store is away, what the store holds of its parts.
class ObjectUpload {
 public:
  virtual ~ObjectUpload() = default;

  // All parts but the last have so many bytes.
  virtual uint64_t part_bytes() const = 0;
  // Takes a part, which may not change until Finish or the destructor has returned; waits while as many parts as may be are under way. Each
  // number once, from 0; any order. What it returns may be the error of an earlier part.
  virtual Status Send(uint64_t part, std::span<const std::byte> bytes) = 0;
  // Waits for the parts that were sent: when it has returned OK their memory may change.
  virtual Status Await() = 0;
  // Waits for all parts, and makes the object.
  virtual Status Finish() = 0;
  // Any thread; does not wait. Send and Finish, under way or to come, return kCancelled soon, and nothing more is asked of the store: what it holds
  // of the parts may stay until AbortUploads.
  virtual void Cancel() = 0;
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // The whole object; kDamage when it is longer than max_bytes.
  virtual Result<std::string> Get(const std::string& key, uint64_t max_bytes) = 0;
  // Reads the ranges, as many at a time as the store takes; kDamage when the object ends before.
  virtual Status Read(const std::string& key, std::span<const ObjectRange> ranges) = 0;
  virtual Result<uint64_t> Bytes(const std::string& key) = 0;

  virtual Status Put(const std::string& key, std::string_view bytes) = 0;
  // kExists when the object is there, with what content ever. Where an answer was lost, the object that is there tells whether it is this
  // call's. Where the server knows no conditional requests, the object is looked for first: then two that put at once may both succeed.
  virtual Status PutNew(const std::string& key, std::string_view bytes) = 0;
  // `bytes`: of the whole object, not 0.
  virtual Result<std::unique_ptr<ObjectUpload>> Upload(const std::string& key, uint64_t bytes) = 0;

  // The objects whose keys begin with `prefix`, sorted by key; all of them, however many answers that takes. That there are none is no error: a list
  // never says kNotFound, and so it is what tells before something is removed that it may be.
  virtual Result<std::vector<StoredObject>> List(const std::string& prefix) = 0;
  // The names, sorted, of what lies directly below the folder `prefix` (which ends with a slash): objects and folders, without the prefix.
  virtual Result<std::vector<std::string>> ListFolder(const std::string& prefix) = 0;

  // Objects that are not there are fine.
  virtual Status Remove(std::span<const std::string> keys) = 0;
  // The keys, sorted, below the prefix of uploads that somebody has begun and neither finished nor given up.
  virtual Result<std::vector<std::string>> ListUploads(const std::string& prefix) = 0;
  // Gives up uploads below the prefix that somebody began and will not finish: what they hold costs money and shows nowhere.
  virtual Status AbortUploads(const std::string& prefix) = 0;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_OBJECT_STORE_H_
