// S3Store: an ObjectStore in a bucket of S3, or of another server that speaks it. docs/s3.md says what users set and what it does for them.
//
// One thread talks to the server (runtime/s3/transfers.h); requests are signed, judged and made again as runtime/s3/client.h says.
#ifndef CAIRN_RUNTIME_S3_S3_STORE_H_
#define CAIRN_RUNTIME_S3_S3_STORE_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/object_store.h"
#include "runtime/s3/client.h"
#include "runtime/s3/config.h"

namespace cairn {

class S3Store : public ObjectStore {
 public:
  // Asks the server nothing yet. kInvalid, kUnavailable (no libcurl) or kPermission (a file of credentials that cannot be read).
  static Result<std::unique_ptr<ObjectStore>> Open(const S3Config& config, const Environment& get);

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
  explicit S3Store(std::unique_ptr<S3Client> client) : client_(std::move(client)) {}

  Status PutWhole(const std::string& key, std::string_view bytes);
  // ListObjectsV2, all answers of it.
  template <typename Take>
  Status EachListing(const std::string& prefix, bool folder, Take take);
  // The same of the uploads that are under way.
  template <typename Take>
  Status EachUpload(const std::string& prefix, Take take);

  const std::unique_ptr<S3Client> client_;
};

// The store of `bucket`, as the variables of this process say (docs/s3.md).
Result<std::unique_ptr<ObjectStore>> OpenS3(const std::string& bucket);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_S3_STORE_H_
