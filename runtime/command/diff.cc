#include "runtime/interop/diff.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/command/diff_table.h"
#include "runtime/command/progress_bar.h"
#include "runtime/command/state.h"
#include "runtime/command/subcommands.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

Result<int> RunDiff(const std::string& a, const std::string& b, bool all, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const OpenedState left, OpenState(a));
  CAIRN_ASSIGN_OR_RETURN(const OpenedState right, OpenState(b));
  std::vector<ArrayDiff> diffs;
  {
    ProgressBar bar;
    CAIRN_ASSIGN_OR_RETURN(diffs, Diff(*left.source, *right.source,
                                       [&](uint64_t done, uint64_t total) { bar.Draw(done, total); }));
  }
  bool equal = true;
  for (const ArrayDiff& diff : diffs) equal = equal && diff.kind == ArrayDiff::Kind::kEqual;
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
  Subcommand diff = AddSubcommand(
      app, invocation, "diff",
      "Compare the arrays of two checkpoints, element by element, however either is cut into files. A and\n"
      "B are each DIR[@STEP|@TAG], a safetensors file, a folder of them, or a folder of\n"
      "torch.distributed.checkpoint. Exits 1 when anything differs.\n"
      "Equal means equal bits; MAX ABS and MAX REL are the greatest differences of finite elements.",
      "cairn diff /scratch/me/run7@1200 /scratch/me/run7@1400",
      [=] { return RunDiff(*a, *b, *all, invocation->json); });
  diff.Positional("A", a.get(), "one state");
  diff.Positional("B", b.get(), "the other one");
  diff.Flag("--all", all.get(), "list the equal arrays, too");
}

}  // namespace cairn
