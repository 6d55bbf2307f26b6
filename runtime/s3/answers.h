// The small XML documents that S3 answers with, and those that it is sent, as values.
//
// Pure; any thread. What is no document of the kind asked for is kIo: some proxy's page, most likely.
#ifndef CAIRN_RUNTIME_S3_ANSWERS_H_
#define CAIRN_RUNTIME_S3_ANSWERS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/object_store.h"

namespace cairn {

// <Error>, or of several in a <DeleteResult> the first.
struct S3Error {
  std::string code;  // "NoSuchKey", …; "" = the text is no error
  std::string message;
  std::string region;  // where the bucket is, when the error says so
};
S3Error ParseError(std::string_view text);

// <ListBucketResult> of ListObjectsV2 with encoding-type=url; names are decoded.
struct S3Listing {
  std::vector<StoredObject> objects;
  std::vector<std::string> folders;  // common prefixes
  std::string next;                  // continuation token; "" = it is the last answer
};
Result<S3Listing> ParseListing(std::string_view text);

// <ListMultipartUploadsResult>, as above.
struct S3Uploads {
  struct One {
    std::string key, id;
  };
  std::vector<One> uploads;
  bool more = false;
  std::string next_key, next_id;  // where the next answer begins
};
Result<S3Uploads> ParseUploads(std::string_view text);

// The id in an <InitiateMultipartUploadResult>.
Result<std::string> ParseUploadId(std::string_view text);

// <CompleteMultipartUpload> of the parts 1, 2, ….
std::string FormatComplete(std::span<const std::string> etags);
// <Delete> that answers with errors alone.
std::string FormatDelete(std::span<const std::string> keys);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_ANSWERS_H_
