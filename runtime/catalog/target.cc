#include "runtime/catalog/target.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "runtime/catalog/marks.h"
#include "runtime/catalog/retention.h"
#include "runtime/formats/names.h"
#include "runtime/io/stores.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBest = "best:";

std::string Listed(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

std::optional<int64_t> ParseStep(const std::string& text) {
  int64_t step = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, step);
  if (error != std::errc() || stop != end || step < 0) return std::nullopt;
  return step;
}

Result<Checkpoint> Newest(const RunDirectory& dir, const Listing& listing) {
  std::vector<Checkpoint> candidates = Candidates(listing);
  if (!candidates.empty()) return std::move(candidates.front());
  if (listing.checkpoints.empty()) return Status(Code::kNotFound, dir.path() + " holds no checkpoint yet");
  return Status(Code::kNotFound,
                "no checkpoint of " + dir.path() +
                    " can be restored (all are damaged or orphans): `cairn ls` shows them, name "
                    "one as DIR@STEP");
}

Result<Checkpoint> OfStep(const RunDirectory& dir, const Listing& listing, int64_t step) {
  std::vector<Checkpoint> found;
  for (const Checkpoint& c : listing.checkpoints) {
    if (c.id.step != step) continue;
    if (!c.orphan) return c;
    found.push_back(c);
  }
  if (found.size() == 1) return std::move(found.front());
  std::vector<std::string> there;
  if (!found.empty()) {
    for (const Checkpoint& c : found) there.push_back(c.name);
    return Status(Code::kNotFound, "step " + std::to_string(step) + " of " + dir.path() +
                                       " has several orphans, name one as DIR@NAME: " + Listed(there));
  }
  for (const Checkpoint& c : listing.checkpoints) there.push_back(std::to_string(c.id.step));
  return Status(Code::kNotFound,
                dir.path() + " has no checkpoint of step " + std::to_string(step) +
                    (there.empty() ? "; it has none at all" : "; there are " + Listed(there)));
}

Result<Checkpoint> OfName(const RunDirectory& dir, const Listing& listing, const std::string& name,
                          const std::string& called) {
  for (const Checkpoint& c : listing.checkpoints) {
    if (c.name == name) return c;
  }
  return Status(Code::kNotFound, called + ": " + dir.path() + " has no checkpoint " + name +
                                     "; `cairn ls` shows those that there are");
}

Result<Checkpoint> OfTag(const RunDirectory& dir, const Listing& listing, const std::string& tag) {
  CAIRN_ASSIGN_OR_RETURN(const auto tags, ReadTags(dir));
  if (const auto it = tags.find(tag); it != tags.end())
    return OfName(dir, listing, it->second, "tag \"" + tag + "\"");
  std::vector<std::string> there;
  for (const auto& [name, checkpoint] : tags) there.push_back(name);
  return Status(Code::kNotFound,
                dir.path() + " has no tag \"" + tag + "\"" +
                    (there.empty() ? " (it has none)" : "; there are " + Listed(there)) +
                    ". Name a step (`cairn ls` shows them, with their metrics), or set the tag: "
                    "cairn tag " +
                    dir.path() + "@STEP " + tag);
}

// `measure` is what stands after the "best:", as in a rule of --checkpoint-keep.
Result<Checkpoint> OfBest(const RunDirectory& dir, const Listing& listing, const std::string& measure) {
  const Result<KeepRules> rules = ParseKeep("", "best=1:" + measure);
  if (!rules.ok() || rules->size() != 1)
    return Status(Code::kInvalid, "@best:" + measure + ": name a metric and min or max, as in " + dir.path() +
                                      "@best:loss:min");
  const std::vector<Checkpoint> candidates = Candidates(listing);
  std::vector<const Checkpoint*> newest_first;
  for (const Checkpoint& c : candidates) newest_first.push_back(&c);
  const std::vector<const Checkpoint*> best = ByMetric(newest_first, rules->front());
  if (!best.empty()) return *best.front();
  std::set<std::string> there;
  for (const Checkpoint& c : candidates)
    for (const auto& [metric, measured] : c.manifest.metrics) there.insert(metric);
  return Status(
      Code::kNotFound,
      "no checkpoint of " + dir.path() + " has a finite metric \"" + rules->front().metric + "\"" +
          (there.empty() ? " or any other" : "; there are " + Listed({there.begin(), there.end()})));
}

}  // namespace

Result<Target> ParseTarget(const std::string& text) {
  std::error_code ignored;
  std::string path = text;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  // In a bucket only its name tells a checkpoint's folder.
  const bool in_bucket = IsObjectPath(path);
  if (in_bucket ? names::ParseAttempt(path.substr(path.rfind('/') + 1)).has_value()
                : fs::is_directory(path, ignored)) {
    const fs::path folder(path);
    if (names::ParseAttempt(folder.filename().string())) {
      const std::string dir = folder.parent_path().string();
      return Target{dir.empty() ? "." : dir, folder.filename().string()};
    }
    return Target{path, ""};
  }
  size_t at = path.rfind("@" + std::string(kBest));  // a metric's name may have a /
  if (at == std::string::npos) {
    at = path.rfind('@');
    if (at != std::string::npos && path.find('/', at) != std::string::npos) at = std::string::npos;
  }
  if (at == std::string::npos && !path.empty()) return Target{path, ""};
  if (path.empty() || at == 0 || at + 1 == path.size()) {
    return Status(Code::kInvalid,
                  "\"" + text + "\": give a directory, DIR@STEP, DIR@TAG or DIR@best:METRIC:min");
  }
  return Target{path.substr(0, at), path.substr(at + 1)};
}

Status CheckTag(const std::string& tag) {
  if (!names::IsValidTag(tag)) {
    return {Code::kInvalid,
            "tag \"" + tag + "\": use 1 to 100 letters, digits and . _ + = -, not beginning with a dot"};
  }
  if (ParseStep(tag) || names::ParseAttempt(tag)) {
    return {Code::kInvalid,
            "tag \"" + tag + "\" would read as a step or a checkpoint's full name; choose another"};
  }
  return OkStatus();
}

Result<RunDirectory> OpenRun(const std::string& dir) {
  CAIRN_ASSIGN_OR_RETURN(const std::string path, AbsolutePath(dir));
  std::error_code error;
  if (!IsObjectPath(path) && !fs::exists(path, error)) {
    if (error) return Status::FromErrno(error.value(), "look at " + path);
    return Status(Code::kNotFound, path + " does not exist; `cairn runs` lists the directories of your runs");
  }
  Result<RunDirectory> run = RunDirectory::OpenExisting(path);
  if (!run.ok() && run.status().code() == Code::kNotFound) {
    return Status(Code::kNotFound,
                  run.status().message() + "; `cairn runs` lists the directories of your runs");
  }
  return run;
}

Result<Chosen> ChooseCheckpoint(const std::string& text) {
  CAIRN_ASSIGN_OR_RETURN(const Target target, ParseTarget(text));
  CAIRN_ASSIGN_OR_RETURN(RunDirectory dir, OpenRun(target.dir));
  CAIRN_ASSIGN_OR_RETURN(Listing listing, ListCheckpoints(dir));
  const std::optional<int64_t> step = ParseStep(target.which);
  Result<Checkpoint> checkpoint =
      target.which.empty()                ? Newest(dir, listing)
      : step                              ? OfStep(dir, listing, *step)
      : names::ParseAttempt(target.which) ? OfName(dir, listing, target.which, text)
      : target.which.starts_with(kBest)   ? OfBest(dir, listing, target.which.substr(kBest.size()))
                                          : OfTag(dir, listing, target.which);
  if (!checkpoint.ok()) return checkpoint.status();
  return Chosen{std::move(dir), std::move(listing), *std::move(checkpoint)};
}

}  // namespace cairn
