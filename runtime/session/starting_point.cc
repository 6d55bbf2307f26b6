#include "runtime/session/starting_point.h"

#include <filesystem>

#include "runtime/catalog/target.h"
#include "runtime/interop/foreign.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSetting = "--checkpoint-from=";
constexpr std::string_view kWeights = ":weights", kOnly = ":only=", kWeightsOnly = "model.*";

struct Asked {
  std::string source;
  std::string only;  // "" = all
};

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t comma = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return parts;
}

Result<Asked> Parse(const std::string& text) {
  std::error_code error;
  if (fs::exists(text, error)) return Asked{text, ""};  // whatever its name is
  Asked asked{text, ""};
  if (text.ends_with(kWeights)) {
    asked = {text.substr(0, text.size() - kWeights.size()), std::string(kWeightsOnly)};
  } else if (const size_t at = text.rfind(kOnly); at != std::string::npos) {
    asked = {text.substr(0, at), text.substr(at + kOnly.size())};
    for (const std::string& pattern : Split(asked.only)) {
      if (pattern.empty()) return Status(Code::kInvalid, "a pattern of names is empty");
    }
  }
  return asked;
}

Result<Origin> Find(const Asked& asked) {
  std::error_code error;
  CAIRN_ASSIGN_OR_RETURN(const std::string path, AbsolutePath(asked.source));
  CAIRN_ASSIGN_OR_RETURN(const std::string format, ForeignFormat(path));
  if (!format.empty()) return Origin{format, path, "", "", asked.only};
  const auto chosen = ChooseCheckpoint(asked.source);
  if (chosen.ok())
    return Origin{"cairn", chosen->dir.path(), chosen->dir.info().id, chosen->checkpoint.name, asked.only};
  if (fs::is_directory(path, error) && chosen.status().code() == Code::kNotFound &&
      !RunDirectory::OpenExisting(path).ok()) {
    return Status(Code::kNotFound, path +
                                       " is none of what a run can begin from: another run's directory, a "
                                       "folder of torch.distributed.checkpoint, safetensors files");
  }
  return chosen.status();
}

}  // namespace

Result<Origin> FindOrigin(const std::string& text) {
  const auto asked = Parse(text);
  if (!asked.ok()) return asked.status().Annotate(std::string(kSetting) + text);
  auto origin = Find(*asked);
  if (!origin.ok()) return origin.status().Annotate(std::string(kSetting) + text);
  return origin;
}

Status CheckOrigin(const std::string& text, const Origin& origin) {
  CAIRN_ASSIGN_OR_RETURN(Origin found, FindOrigin(text));
  CAIRN_ASSIGN_OR_RETURN(const Asked asked, Parse(text));
  const auto target = ParseTarget(asked.source);
  if (found.path == origin.path && target.ok() && target->which.empty()) found.checkpoint = origin.checkpoint;
  if (found == origin) return OkStatus();
  return {Code::kExists, std::string(kSetting) + text + ": the run has begun from " + OriginTitle(origin) +
                             ", and has saved nothing since: remove its directory, or give another "
                             "--checkpoint-dir"};
}

std::string OriginTitle(const Origin& origin) {
  return origin.path + (origin.checkpoint.empty() ? "" : "@" + origin.checkpoint) +
         (origin.only.empty() ? "" : std::string(kOnly) + origin.only);
}

std::vector<std::string> PatternsOf(const Origin& origin) {
  return origin.only.empty() ? std::vector<std::string>() : Split(origin.only);
}

}  // namespace cairn
