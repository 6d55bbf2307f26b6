#include "runtime/command/diff_table.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/command/text.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;
using Kind = ArrayDiff::Kind;

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kEqual:
      return "equal";
    case Kind::kDiffers:
      return "differs";
    case Kind::kOtherForm:
      return "other form";
    case Kind::kOnlyInA:
      return "only in A";
    case Kind::kOnlyInB:
      return "only in B";
  }
  return "";
}

std::string Short(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

}  // namespace

Json DiffJson(const ArrayDiff& diff) {
  Json out = {{"name", diff.name},
              {"result", KindName(diff.kind)},
              {"dtype", DTypeName(diff.dtype)},
              {"shape", std::vector<int64_t>(diff.shape.begin(), diff.shape.end())}};
  if (diff.kind == Kind::kOtherForm) out["forms"] = diff.forms;
  if (diff.kind == Kind::kDiffers || diff.kind == Kind::kEqual) {
    out["differing"] = diff.difference.differing;
    out["not_finite"] = diff.difference.not_finite;
    out["max_abs"] = diff.difference.max_abs;
    out["max_rel"] = diff.difference.max_rel;
  }
  return out;
}

void PrintDiffs(const std::vector<ArrayDiff>& diffs, bool all) {
  Table table({{"ARRAY"},
               {"DTYPE"},
               {"SHAPE"},
               {"RESULT"},
               {"DIFFERING", true},
               {"MAX ABS", true},
               {"MAX REL", true}});
  size_t equal = 0;
  for (const ArrayDiff& diff : diffs) {
    if (diff.kind == Kind::kEqual) ++equal;
    if (diff.kind == Kind::kEqual && !all) continue;
    const bool differs = diff.kind == Kind::kDiffers;
    std::string result = KindName(diff.kind);
    if (diff.kind == Kind::kOtherForm) result += ": " + diff.forms;
    if (diff.difference.not_finite > 0)
      result += ", " + std::to_string(diff.difference.not_finite) + " of them NaN or infinite";
    table.AddRow({diff.name, std::string(DTypeName(diff.dtype)), diff.shape.ToString(), result,
                  differs ? std::to_string(diff.difference.differing) : "",
                  differs ? Short(diff.difference.max_abs) : "",
                  differs ? Short(diff.difference.max_rel) : ""});
  }
  if (all || equal < diffs.size()) std::printf("%s\n", table.ToString().c_str());
  std::printf("%zu of %s equal\n", equal, Count(diffs.size(), "array").c_str());
}

}  // namespace cairn
