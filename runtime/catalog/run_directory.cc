#include "runtime/catalog/run_directory.h"

#include <nlohmann/json.hpp>

#include "runtime/catalog/sealed_file.h"
#include "runtime/formats/manifest.h"
#include "runtime/formats/names.h"
#include "runtime/formats/sealed_json.h"
#include "runtime/io/random.h"
#include "runtime/io/stores.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kKind = "run";

Result<RunInfo> ReadRun(const std::string& path) {
  CAIRN_ASSIGN_OR_RETURN(const Json members, ReadSealed(path, kKind));
  JsonFields fields(members, path);
  RunInfo info{fields.String("id"), fields.String("name"), fields.String("created"), {}};
  CAIRN_RETURN_IF_ERROR(fields.status());
  if (members.contains("origin")) {
    JsonFields origin(fields.Object("origin"), path + ", origin");
    info.origin = Origin{origin.String("format"), origin.String("path"), origin.String("run_id"),
                         origin.String("checkpoint")};
    if (members["origin"].contains("only")) info.origin->only = origin.String("only");
    CAIRN_RETURN_IF_ERROR(fields.status());
    CAIRN_RETURN_IF_ERROR(origin.status());
  }
  return info;
}

// Whatever lies in the bucket would lie in the run's folder.
Status MustBeBelowABucket(const std::string& path) {
  if (!IsObjectPath(path)) return OkStatus();
  CAIRN_ASSIGN_OR_RETURN(const ObjectPlace place, PlaceOf(path));
  if (!place.key.empty()) return OkStatus();
  return {Code::kInvalid, path + ": a whole bucket is no run's directory; give s3://BUCKET/PREFIX"};
}

}  // namespace

Result<RunDirectory> RunDirectory::Open(const std::string& path, const std::string& name, FileMode mode,
                                        const std::optional<Origin>& origin) {
  CAIRN_RETURN_IF_ERROR(MustBeBelowABucket(path));
  CAIRN_RETURN_IF_ERROR(MakeDirectories(path, mode));
  const std::string run = path + "/" + std::string(names::kRun);
  Result<RunInfo> info = ReadRun(run);
  if (!info.ok() && info.status().code() == Code::kNotFound) {
    Json members = {{"id", RandomHex(16)}, {"name", name}, {"created", UtcNow()}};
    if (origin) {
      members["origin"] = {{"format", origin->format},
                           {"path", origin->path},
                           {"run_id", origin->run_id},
                           {"checkpoint", origin->checkpoint}};
      if (!origin->only.empty()) members["origin"]["only"] = origin->only;
    }
    CAIRN_ASSIGN_OR_RETURN(const std::string text, SealJson(kKind, members));
    const Status made = CreateExclusive(run, text, mode);
    if (!made.ok() && made.code() != Code::kExists) return made;
    info = ReadRun(run);
  }
  if (!info.ok()) return info.status();
  return RunDirectory(path, *std::move(info), mode);
}

Result<RunDirectory> RunDirectory::OpenExisting(const std::string& path, FileMode mode) {
  CAIRN_RETURN_IF_ERROR(MustBeBelowABucket(path));
  Result<RunInfo> info = ReadRun(path + "/" + std::string(names::kRun));
  if (info.ok()) return RunDirectory(path, *std::move(info), mode);
  if (info.status().code() == Code::kNotFound) {
    return Status(Code::kNotFound, path + " is no run's directory: it holds no file RUN");
  }
  return info.status();
}

}  // namespace cairn
