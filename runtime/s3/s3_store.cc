#include "runtime/s3/s3_store.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "runtime/io/random.h"
#include "runtime/s3/answers.h"
#include "runtime/s3/read_plan.h"
#include "runtime/s3/s3_upload.h"

namespace cairn {
namespace {

constexpr uint64_t kGap = 64 << 10;     // reading so much for nothing costs less than one more request
constexpr size_t kKeysOfDelete = 1000;  // in one request, at most

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

Result<std::unique_ptr<ObjectStore>> OpenS3(const std::string& bucket) {
  CAIRN_ASSIGN_OR_RETURN(const S3Config config, S3Config::FromEnvironment(bucket, ProcessEnvironment));
  return S3Store::Open(config, ProcessEnvironment);
}

Result<std::unique_ptr<ObjectStore>> S3Store::Open(const S3Config& config, const Environment& get) {
  CAIRN_ASSIGN_OR_RETURN(std::unique_ptr<S3Client> client, S3Client::Start(config, get));
  return std::unique_ptr<ObjectStore>(new S3Store(std::move(client)));
}

Result<std::string> S3Store::Get(const std::string& key, uint64_t max_bytes) {
  S3Request get;
  get.key = key;
  get.max_text = max_bytes;
  CAIRN_ASSIGN_OR_RETURN(HttpAnswer answer, client_->Make(std::move(get)));
  if (answer.text_ended) return std::move(answer.text);
  return Status(Code::kDamage,
                client_->config().Name(key) + " is longer than " + std::to_string(max_bytes) + " bytes");
}

Status S3Store::Read(const std::string& key, std::span<const ObjectRange> ranges) {
  S3Requests requests(client_.get());
  for (PlannedRead& read : PlanReads(ranges, kGap, client_->config().part_bytes)) {
    CAIRN_RETURN_IF_ERROR(requests.WaitUntilBelow(2 * static_cast<size_t>(client_->config().connections)));
    S3Request get;
    get.key = key;
    get.headers = {{"Range", "bytes=" + std::to_string(read.offset) + "-" +
                                 std::to_string(read.offset + read.bytes - 1)}};
    get.into = std::move(read.into);
    requests.Add(std::move(get), [begin = read.offset, end = read.offset + read.bytes](HttpAnswer answer) {
      if (answer.status != 206) return Status(Code::kIo, "the server gives no ranges of objects");
      const std::string given = answer.headers["content-range"];
      if (!given.starts_with("bytes " + std::to_string(begin) + "-"))
        return Status(Code::kIo, "the server gives the range '" + given + "' in place of that from byte " +
                                     std::to_string(begin) + " on");
      if (answer.into_filled) return OkStatus();
      return Status(Code::kDamage, "the object ends before byte " + std::to_string(end));
    });
  }
  return requests.WaitUntilBelow(1);
}

Result<uint64_t> S3Store::Bytes(const std::string& key) {
  S3Request look;
  look.method = "HEAD";
  look.key = key;
  CAIRN_ASSIGN_OR_RETURN(const HttpAnswer answer, client_->Make(std::move(look)));
  uint64_t bytes = 0;
  const auto at = answer.headers.find("content-length");
  if (at == answer.headers.end() ||
      std::from_chars(at->second.data(), at->second.data() + at->second.size(), bytes).ec != std::errc()) {
    return Status(Code::kIo,
                  client_->config().Name(key) + ": the server does not say how long the object is");
  }
  return bytes;
}

Status S3Store::PutWhole(const std::string& key, std::string_view bytes) {
  S3Request put;
  put.method = "PUT";
  put.key = key;
  put.body = BytesOf(bytes);
  return client_->Make(std::move(put)).status();
}

Status S3Store::Put(const std::string& key, std::string_view bytes) {
  if (bytes.size() <= client_->config().part_bytes) return PutWhole(key, bytes);
  CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectUpload> upload, Upload(key, bytes.size()));
  const std::span<const std::byte> all = BytesOf(bytes);
  for (uint64_t part = 0, at = 0; at < all.size(); ++part, at += upload->part_bytes()) {
    CAIRN_RETURN_IF_ERROR(
        upload->Send(part, all.subspan(at, std::min<uint64_t>(upload->part_bytes(), all.size() - at))));
  }
  return upload->Finish();
}

// 1. Look: a server that passes over the condition would replace the object without a word.
// 2. Put, on the condition that there is no such object.
// 3. It is there, or no answer came. It may be the work of a try of ours whose answer was lost: the object's id tells.
Status S3Store::PutNew(const std::string& key, std::string_view bytes) {
  const Status exists(Code::kExists, client_->config().Name(key) + " is there already");
  const Result<uint64_t> there = Bytes(key);
  if (there.ok()) return exists;
  if (there.status().code() != Code::kNotFound) return there.status();

  const std::string id = RandomHex(32);
  S3Request put;
  put.method = "PUT";
  put.key = key;
  put.headers = {{"If-None-Match", "*"}, {kIdHeader, id}};
  put.body = BytesOf(bytes);
  put.accept = {412, 501};
  const Result<HttpAnswer> answer = client_->Make(std::move(put));
  if (answer.ok() && answer->status < 300) return OkStatus();
  if (answer.ok() && answer->status == 501) return PutWhole(key, bytes);
  if (!answer.ok() && !MayBeDone(answer.status())) return answer.status();
  const Result<bool> ours = HasId(client_.get(), key, id);
  if (ours.ok()) return *ours ? OkStatus() : exists;
  return answer.ok() ? ours.status() : answer.status();
}

Result<std::unique_ptr<ObjectUpload>> S3Store::Upload(const std::string& key, uint64_t bytes) {
  return S3Upload::Begin(client_.get(), key, bytes);
}

template <typename Take>
Status S3Store::EachListing(const std::string& prefix, bool folder, Take take) {
  std::string next;
  do {
    S3Request list;
    list.query = {{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", prefix}};
    if (folder) list.query["delimiter"] = "/";
    if (!next.empty()) list.query["continuation-token"] = next;
    const Result<HttpAnswer> answer = client_->Make(std::move(list));
    if (answer.status().code() == Code::kNotFound)  // a listing of nothing is empty
      return Status(Code::kIo, answer.status().message());
    CAIRN_RETURN_IF_ERROR(answer.status());
    Result<S3Listing> listing = ParseListing(answer->text);
    if (!listing.ok()) return listing.status().Annotate(client_->config().Name(prefix));
    if (!listing->next.empty() && listing->next == next) {
      return Status(Code::kIo, client_->config().Name(prefix) +
                                   ": the server gives the same part of a listing again and again");
    }
    next = listing->next;
    take(*std::move(listing));
  } while (!next.empty());
  return OkStatus();
}

Result<std::vector<StoredObject>> S3Store::List(const std::string& prefix) {
  std::vector<StoredObject> objects;
  CAIRN_RETURN_IF_ERROR(EachListing(prefix, false, [&](S3Listing listing) {
    std::move(listing.objects.begin(), listing.objects.end(), std::back_inserter(objects));
  }));
  std::sort(objects.begin(), objects.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return objects;
}

Result<std::vector<std::string>> S3Store::ListFolder(const std::string& prefix) {
  std::vector<std::string> names;
  CAIRN_RETURN_IF_ERROR(EachListing(prefix, true, [&](const S3Listing& listing) {
    for (const StoredObject& object : listing.objects) names.push_back(object.key.substr(prefix.size()));
    for (const std::string& folder : listing.folders)
      names.push_back(folder.substr(prefix.size(), folder.size() - prefix.size() - 1));
  }));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::erase(names, "");  // an object that stands for the folder itself
  return names;
}

Status S3Store::Remove(std::span<const std::string> keys) {
  while (!keys.empty()) {
    const auto some = keys.first(std::min(keys.size(), kKeysOfDelete));
    keys = keys.subspan(some.size());
    const std::string body = FormatDelete(some);
    S3Request remove;
    remove.method = "POST";
    remove.query = {{"delete", ""}};
    remove.body = BytesOf(body);
    CAIRN_RETURN_IF_ERROR(client_->Make(std::move(remove)).status());
  }
  return OkStatus();
}

template <typename Take>
Status S3Store::EachUpload(const std::string& prefix, Take take) {
  std::string next_key, next_id;
  bool more = true;
  while (more) {
    S3Request list;
    list.query = {{"uploads", ""}, {"encoding-type", "url"}, {"prefix", prefix}};
    if (!next_key.empty()) list.query["key-marker"] = next_key;
    if (!next_id.empty()) list.query["upload-id-marker"] = next_id;
    CAIRN_ASSIGN_OR_RETURN(const HttpAnswer answer, client_->Make(std::move(list)));
    Result<S3Uploads> uploads = ParseUploads(answer.text);
    if (!uploads.ok()) return uploads.status().Annotate(client_->config().Name(prefix));
    for (const S3Uploads::One& upload : uploads->uploads) CAIRN_RETURN_IF_ERROR(take(upload));
    next_key = uploads->next_key;
    next_id = uploads->next_id;
    more = uploads->more;
  }
  return OkStatus();
}

Result<std::vector<std::string>> S3Store::ListUploads(const std::string& prefix) {
  std::vector<std::string> keys;
  CAIRN_RETURN_IF_ERROR(EachUpload(prefix, [&](const S3Uploads::One& upload) {
    keys.push_back(upload.key);
    return OkStatus();
  }));
  std::sort(keys.begin(), keys.end());
  return keys;
}

Status S3Store::AbortUploads(const std::string& prefix) {
  return EachUpload(prefix, [&](const S3Uploads::One& upload) {
    S3Request drop;
    drop.method = "DELETE";
    drop.key = upload.key;
    drop.query = {{"uploadId", upload.id}};
    drop.accept = {404};
    return client_->Make(std::move(drop)).status();
  });
}

}  // namespace cairn
