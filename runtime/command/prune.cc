#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/catalog/epoch.h"
#include "runtime/catalog/event.h"
#include "runtime/catalog/retention.h"
#include "runtime/catalog/target.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"
#include "runtime/settings.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKeepVariable = "CAIRN_KEEP";

// What the user gives, else what the newest checkpoint was saved under, else the default.
Result<KeepRules> RulesOf(const std::string& given, const Listing& listing) {
  std::string text = given.empty() ? std::string(GetSettingInfo(kSetting_keep).fallback) : given;
  if (const auto candidates = Candidates(listing); given.empty() && !candidates.empty()) {
    const auto& settings = candidates.front().manifest.settings;
    if (const auto it = settings.find(kKeepVariable); it != settings.end()) text = it->second;
  }
  return ParseKeep("--keep", text);
}

struct Plan {
  uint32_t epoch = 0;
  std::vector<std::string> prune;
};

Result<Plan> MakePlan(const RunDirectory& dir, const Listing& listing, const std::string& keep) {
  Plan plan;
  CAIRN_ASSIGN_OR_RETURN(const KeepRules rules, RulesOf(keep, listing));
  CAIRN_ASSIGN_OR_RETURN(const auto newest, NewestEpoch(dir));
  if (!newest) return plan;
  plan.epoch = newest->epoch;
  CAIRN_ASSIGN_OR_RETURN(const auto parent, ReadParent(dir, plan.epoch));
  if (!parent && newest->holder.copies.empty()) {  // of a mirror nobody needs to go on
    return Status(Code::kBusy, "a life of the run has not said yet from which checkpoint it goes on (" +
                                   Describe(newest->holder) +
                                   "): it is restoring, or was killed meanwhile. Prune when the run goes on");
  }
  LeaseWatch leases;
  CAIRN_ASSIGN_OR_RETURN(const std::set<std::string> kept,
                         KeptByMarks(dir, leases, std::chrono::steady_clock::now()));
  plan.prune = PlanRetention(listing, plan.epoch, parent.value_or(""), rules, kept);
  return plan;
}

Result<int> Prune(const std::string& path, const std::string& keep, bool dry_run, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const RunDirectory dir, OpenRun(path));
  CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(dir));
  CAIRN_ASSIGN_OR_RETURN(const Plan plan, MakePlan(dir, listing, keep));
  uint64_t bytes = 0;
  for (const std::string& name : plan.prune) {
    if (!dry_run) {
      CAIRN_RETURN_IF_ERROR(PruneCheckpoint(dir, plan.epoch, name));
      (void)AppendEvent(dir, "pruned", 0, {{"checkpoint", JsonText(name)}});
    }
    for (const Checkpoint& c : listing.checkpoints) {
      if (c.name != name) continue;
      bytes += c.manifest.total_bytes;
      if (!json)
        std::printf("%s %s, %s\n", dry_run ? "would prune" : "pruned", name.c_str(),
                    FormatBytes(c.manifest.total_bytes).c_str());
    }
  }
  const size_t kept = listing.checkpoints.size() - plan.prune.size();
  if (json) {
    PrintJson({{"dir", dir.path()},
               {"dry_run", dry_run},
               {"pruned", plan.prune},
               {"bytes", bytes},
               {"kept", kept}});
  } else {
    std::printf("%s, %s; %s\n", Count(plan.prune.size(), "checkpoint").c_str(), FormatBytes(bytes).c_str(),
                (std::to_string(kept) + " kept").c_str());
  }
  return kExitGood;
}

}  // namespace

void AddPrune(CLI::App* app, Invocation* invocation) {
  auto dir = std::make_shared<std::string>();
  auto keep = std::make_shared<std::string>();
  auto dry_run = std::make_shared<bool>(false);
  Subcommand prune = AddSubcommand(
      app, invocation, "prune",
      "Remove the checkpoints that retention does not keep, also while a job of the run goes on. Never\n"
      "touched: the newest one, the newest with finite metrics, tagged and pinned ones, one that is being\n"
      "read, orphans (another branch), and what was passed over as damaged.",
      "cairn prune /scratch/me/run7 --keep last=1 --dry-run",
      [=] { return Prune(*dir, *keep, *dry_run, invocation->json); });
  prune.Positional("DIR", dir.get(), "the run's directory");
  prune.Option("--keep", "POLICY", keep.get(),
               "as --checkpoint-keep; by default what the run was started with");
  prune.Flag("--dry-run", dry_run.get(), "only say what would be removed");
}

}  // namespace cairn
