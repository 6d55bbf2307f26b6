#include "runtime/catalog/marks.h"

#include <nlohmann/json.hpp>

#include "runtime/catalog/sealed_file.h"
#include "runtime/formats/manifest.h"
#include "runtime/formats/names.h"
#include "runtime/formats/sealed_json.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTagKind = "tag";
constexpr std::string_view kPinKind = "pin";
constexpr std::string_view kFinishedKind = "finished";

// All three are the same thing: a file that names a checkpoint.
Status Point(const RunDirectory& dir, const std::string& path, std::string_view kind,
             const std::string& checkpoint) {
  return PublishSealed(path, kind, {{"checkpoint", checkpoint}, {"time", UtcNow()}}, dir.mode());
}

Result<std::string> Pointee(const std::string& path, std::string_view kind) {
  CAIRN_ASSIGN_OR_RETURN(const Json members, ReadSealed(path, kind));
  JsonFields fields(members, path);
  std::string checkpoint = fields.String("checkpoint");
  CAIRN_RETURN_IF_ERROR(fields.status());
  return checkpoint;
}

// Files of a folder that need not be there. Those that are being written have names that no mark has.
Result<std::vector<std::string>> ListMarks(const std::string& folder) {
  auto files = ListDirectory(folder);
  if (!files.ok()) {
    if (files.status().code() == Code::kNotFound) return std::vector<std::string>();
    return files;
  }
  return files;
}

Status CheckTag(const std::string& tag) {
  if (names::IsValidTag(tag)) return OkStatus();
  return {Code::kInvalid,
          "tag \"" + tag + "\": use 1 to 100 letters, digits and . _ + = -, not beginning with a dot"};
}

Status CheckName(const std::string& checkpoint) {
  if (names::ParseAttempt(checkpoint)) return OkStatus();
  return {Code::kInvalid, "\"" + checkpoint + "\" is no checkpoint's name, as `cairn ls` shows it"};
}

}  // namespace

Status SetTag(const RunDirectory& dir, const std::string& tag, const std::string& checkpoint) {
  CAIRN_RETURN_IF_ERROR(CheckTag(tag));
  CAIRN_RETURN_IF_ERROR(CheckName(checkpoint));
  CAIRN_RETURN_IF_ERROR(MakeDirectories(dir.PathOf(names::kTags), dir.mode()));
  return Point(dir, dir.PathOf(names::kTags, tag), kTagKind, checkpoint);
}

Status RemoveTag(const RunDirectory& dir, const std::string& tag) {
  CAIRN_RETURN_IF_ERROR(CheckTag(tag));
  return RemoveFile(dir.PathOf(names::kTags, tag));
}

Result<std::map<std::string, std::string>> ReadTags(const RunDirectory& dir) {
  const std::string folder = dir.PathOf(names::kTags);
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> files, ListMarks(folder));
  std::map<std::string, std::string> tags;
  for (const std::string& tag : files) {
    if (!names::IsValidTag(tag)) continue;
    CAIRN_ASSIGN_OR_RETURN(tags[tag], Pointee(folder + "/" + tag, kTagKind));
  }
  return tags;
}

Status Pin(const RunDirectory& dir, const std::string& checkpoint) {
  CAIRN_RETURN_IF_ERROR(CheckName(checkpoint));
  CAIRN_RETURN_IF_ERROR(MakeDirectories(dir.PathOf(names::kPins), dir.mode()));
  return Point(dir, dir.PathOf(names::kPins, checkpoint), kPinKind, checkpoint);
}

Status Unpin(const RunDirectory& dir, const std::string& checkpoint) {
  CAIRN_RETURN_IF_ERROR(CheckName(checkpoint));
  return RemoveFile(dir.PathOf(names::kPins, checkpoint));
}

Result<std::set<std::string>> ReadPins(const RunDirectory& dir) {
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> files, ListMarks(dir.PathOf(names::kPins)));
  std::set<std::string> pins;
  for (const std::string& file : files) {
    if (names::ParseAttempt(file))
      pins.insert(file);  // the name says it all: a pin without readable content still holds
  }
  return pins;
}

Status WriteFinished(const RunDirectory& dir, const std::string& checkpoint) {
  return Point(dir, dir.PathOf(names::kFinished), kFinishedKind, checkpoint);
}

Result<bool> IsFinished(const RunDirectory& dir, const Listing& listing) {
  const Result<std::string> finished = Pointee(dir.PathOf(names::kFinished), kFinishedKind);
  if (!finished.ok()) {
    if (finished.status().code() == Code::kNotFound) return false;
    return finished.status();
  }
  const std::vector<Checkpoint> candidates = Candidates(listing);
  return !candidates.empty() && candidates.front().name == *finished;
}

}  // namespace cairn
