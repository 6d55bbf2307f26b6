#include "runtime/interop/diff.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/command/progress_bar.h"
#include "runtime/command/state.h"
#include "runtime/command/subcommands.h"
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

Result<int> RunDiff(const std::string& a, const std::string& b, bool all, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const State left, OpenState(a));
  CAIRN_ASSIGN_OR_RETURN(const State right, OpenState(b));
  std::vector<ArrayDiff> diffs;
  {
    ProgressBar bar;
    CAIRN_ASSIGN_OR_RETURN(diffs, Diff(*left.source, *right.source,
                                       [&](uint64_t done, uint64_t total) { bar.Draw(done, total); }));
  }
  bool equal = true;
  for (const ArrayDiff& diff : diffs) equal = equal && diff.kind == Kind::kEqual;
  if (json) {
    Json arrays = Json::array();
    for (const ArrayDiff& diff : diffs) arrays.push_back(DiffJson(diff));
    PrintJson({{"a", left.path}, {"b", right.path}, {"equal", equal}, {"arrays", std::move(arrays)}});
  } else {
    PrintDiffs(diffs, all);
  }
  return equal ? kExitGood : kExitBad;
}

}  // namespace

void AddDiff(CLI::App* app, Invocation* invocation) {
  auto a = std::make_shared<std::string>();
  auto b = std::make_shared<std::string>();
  auto all = std::make_shared<bool>(false);
  CLI::App* diff = AddSubcommand(
      app, invocation, "diff",
      "Compare the arrays of two checkpoints, element by element, however either is cut into files. A and\n"
      "B are each DIR[@STEP|@TAG], a safetensors file, a folder of them, or a folder of\n"
      "torch.distributed.checkpoint. Exits 1 when anything differs.\n"
      "Equal means equal bits; MAX ABS and MAX REL are the greatest differences of finite elements.",
      "cairn diff /scratch/me/run7@1200 /scratch/me/run7@1400",
      [=] { return RunDiff(*a, *b, *all, invocation->json); });
  diff->add_option("A", *a, "one state")->required()->type_name("");
  diff->add_option("B", *b, "the other one")->required()->type_name("");
  diff->add_flag("--all", *all, "list the equal arrays, too");
}

}  // namespace cairn
