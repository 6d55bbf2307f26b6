#include "runtime/s3/s3_upload.h"

#include <algorithm>
#include <utility>

#include "runtime/io/random.h"
#include "runtime/s3/answers.h"

namespace cairn {
namespace {

constexpr uint64_t kMostParts = 10000;
constexpr size_t kAhead = 2;  // a connection that is free finds the next part hashed
constexpr uint64_t kMiB = 1 << 20;

uint64_t DivideUp(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

uint64_t PartBytes(uint64_t object_bytes, uint64_t smallest) {
  const uint64_t least = DivideUp(object_bytes, kMostParts);
  return least <= smallest ? smallest : DivideUp(least, kMiB) * kMiB;
}

Result<bool> HasId(S3Client* client, const std::string& key, const std::string& id) {
  S3Request look;
  look.method = "HEAD";
  look.key = key;
  CAIRN_ASSIGN_OR_RETURN(const HttpAnswer answer, client->Make(std::move(look)));
  const auto at = answer.headers.find(kIdHeader);
  return at != answer.headers.end() && at->second == id;
}

S3Upload::S3Upload(S3Client* client, std::string key, uint64_t part_bytes, uint64_t parts)
    : client_(client),
      key_(std::move(key)),
      tag_(RandomHex(32)),
      part_bytes_(part_bytes),
      etags_(parts),
      requests_(client) {}

Result<std::unique_ptr<ObjectUpload>> S3Upload::Begin(S3Client* client, const std::string& key,
                                                      uint64_t bytes) {
  const uint64_t part_bytes = PartBytes(bytes, client->config().part_bytes);
  std::unique_ptr<S3Upload> upload(new S3Upload(client, key, part_bytes, DivideUp(bytes, part_bytes)));
  S3Request begin;
  begin.method = "POST";
  begin.key = key;
  begin.query = {{"uploads", ""}};
  begin.headers = {{kIdHeader, upload->tag_}};
  CAIRN_ASSIGN_OR_RETURN(const HttpAnswer answer, client->Make(std::move(begin)));
  CAIRN_ASSIGN_OR_RETURN(upload->id_, ParseUploadId(answer.text));
  return std::unique_ptr<ObjectUpload>(std::move(upload));
}

S3Upload::~S3Upload() {
  if (finished_ || id_.empty()) return;
  requests_.GiveUp();
  if (lost_) return;
  S3Request drop;
  drop.method = "DELETE";
  drop.key = key_;
  drop.query = {{"uploadId", id_}};
  static_cast<void>(client_->Make(std::move(drop)));
}

Status S3Upload::Note(const Status& status) {
  lost_ = lost_ || MayBeDone(status) || status.code() == Code::kCancelled;
  return status;
}

void S3Upload::Cancel() { requests_.Cancel(); }

Status S3Upload::Send(uint64_t part, std::span<const std::byte> bytes) {
  if (part >= etags_.size() || bytes.empty() || bytes.size() > part_bytes_ ||
      (part + 1 < etags_.size() && bytes.size() != part_bytes_)) {
    return Status(Code::kInternal, client_->config().Name(key_) + ": part " + std::to_string(part) + " of " +
                                       std::to_string(etags_.size()) + " cannot have " +
                                       std::to_string(bytes.size()) + " bytes");
  }
  CAIRN_RETURN_IF_ERROR(
      Note(requests_.WaitUntilBelow(kAhead * static_cast<size_t>(client_->config().connections))));
  S3Request send;
  send.method = "PUT";
  send.key = key_;
  send.query = {{"partNumber", std::to_string(part + 1)}, {"uploadId", id_}};
  send.body = bytes;
  requests_.Add(std::move(send), [this, part](HttpAnswer answer) {
    etags_[part] = answer.headers["etag"];
    return etags_[part].empty() ? Status(Code::kIo, "the server takes a part and gives it no ETag")
                                : OkStatus();
  });
  return OkStatus();
}

Status S3Upload::Await() { return Note(requests_.WaitUntilBelow(1)); }

Status S3Upload::Finish() {
  CAIRN_RETURN_IF_ERROR(Await());
  if (const auto at = std::find(etags_.begin(), etags_.end(), ""); at != etags_.end()) {
    return Status(Code::kInternal, client_->config().Name(key_) + ": part " +
                                       std::to_string(at - etags_.begin()) + " was not sent");
  }
  const std::string body = FormatComplete(etags_);
  S3Request complete;
  complete.method = "POST";
  complete.key = key_;
  complete.query = {{"uploadId", id_}};
  complete.body = BytesOf(body);
  complete.accept = {404};
  HttpAnswer answer;
  requests_.Add(std::move(complete), [&answer](HttpAnswer done) {
    answer = std::move(done);
    return OkStatus();
  });
  const Status made = Note(requests_.WaitUntilBelow(1));
  requests_.GiveUp();  // the body goes
  if (made.ok() && answer.status < 300) {
    finished_ = true;
    return OkStatus();
  }
  if (!made.ok() && !MayBeDone(made)) return made;
  const Result<bool> ours = HasId(client_, key_, tag_);
  finished_ = ours.ok() && *ours;
  if (finished_) return OkStatus();
  if (!made.ok()) return made;
  return Status(Code::kIo,
                client_->config().Name(key_) + ": the server knows nothing of this upload any more (" +
                    ParseError(answer.text).code + "): somebody has given it up, or a rule of the bucket's");
}

}  // namespace cairn
