// S3Upload: one object that is sent in parts.
//
// 1. The upload is created with a random id in its metadata (x-amz-meta-cairn-id).
// 2. Parts are sent, as many at a time as the store has connections, each with its MD5; the server answers each with an ETag.
// 3. Finish names all parts and their ETags: the object is there, whole. Where that answer is lost, or says that there is no such upload (any
//    more), the object that is there tells by its id whether it is this one.
// 4. The destructor of one that is not finished has the server drop its parts. A process that dies leaves them to AbortUploads, and so does an
//    upload that was cancelled or that the server does not answer: who waits for it has no time for another request.
#ifndef CAIRN_RUNTIME_S3_S3_UPLOAD_H_
#define CAIRN_RUNTIME_S3_S3_UPLOAD_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/object_store.h"
#include "runtime/s3/client.h"

namespace cairn {

class S3Upload : public ObjectUpload {
 public:
  // `client` outlives it.
  static Result<std::unique_ptr<ObjectUpload>> Begin(S3Client* client, const std::string& key,
                                                     uint64_t bytes);
  ~S3Upload() override;

  uint64_t part_bytes() const override { return part_bytes_; }
  Status Send(uint64_t part, std::span<const std::byte> bytes) override;
  Status Await() override;
  Status Finish() override;
  void Cancel() override;

 private:
  Status Note(const Status& status);
  S3Upload(S3Client* client, std::string key, uint64_t part_bytes, uint64_t parts);

  S3Client* const client_;
  const std::string key_, tag_;
  const uint64_t part_bytes_;
  std::string id_;
  std::vector<std::string> etags_;  // of the parts; "" = not sent
  bool finished_ = false;
  bool lost_ = false;  // cancelled, or the server does not answer
  S3Requests requests_;
};

// The least size of a part that makes no more than 10,000 of them: `smallest`, or whole MiB.
uint64_t PartBytes(uint64_t object_bytes, uint64_t smallest);

// Whether an answer may have been lost of a request that was carried out.
inline bool MayBeDone(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kTimeout;
}

// The header that tells an object of ours from one that another put to the same key.
inline constexpr char kIdHeader[] = "x-amz-meta-cairn-id";
// Whether the object that is at the key has this id; kNotFound when there is none.
Result<bool> HasId(S3Client* client, const std::string& key, const std::string& id);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_S3_UPLOAD_H_
