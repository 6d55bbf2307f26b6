#include "runtime/command/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/command/doctor_site.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"
#include "runtime/io/stores.h"
#include "runtime/version.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

std::string_view FindingName(Finding finding) {
  switch (finding) {
    case Finding::kGood:
      return "ok";
    case Finding::kWarning:
      return "warning";
    case Finding::kProblem:
      return "problem";
  }
  return "";
}

std::string HostName() {
  if (const char* node = std::getenv("SLURMD_NODENAME")) return node;
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

Diagnosis Examine(const std::string& dir) {
  std::vector<Check> checks = {{"version", Finding::kGood, std::string("cairn ") + kVersion, ""}};
  const auto append = [&](std::vector<Check> more) {
    checks.insert(checks.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  const SlurmFacts slurm = AskSlurm();
  std::optional<PluginLine> plugin;
  append(CheckSlurm(slurm));
  if (slurm.installed) {
    const auto path = slurm.config.find("PlugStackConfig");
    const std::string stack = path != slurm.config.end() && path->second.starts_with('/')
                                  ? path->second
                                  : "/etc/slurm/plugstack.conf";
    plugin = FindPluginLine(stack);
    append(CheckPlugin(slurm, stack, plugin));
  }
  append(CheckLibraries(LibraryDirectory(plugin)));
  append(CheckContainer("", [](const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }));
  append(CheckDirectory(dir));
  append(CheckMemory(""));
  return {HostName(), FindFacts(plugin), std::move(checks)};
}

struct Wish {
  std::string dir;
  bool site = false;
  std::string partition;
};

Result<int> Doctor(const Wish& wish, bool json) {
  std::string dir = wish.dir;
  if (dir.empty()) {
    const char* set = std::getenv("CAIRN_DIR");
    dir = set != nullptr && *set == '/' ? set : ".";
  }
  std::error_code ignored;
  if (wish.site && !IsObjectPath(dir)) dir = std::filesystem::absolute(dir, ignored).string();
  Diagnosis found = Examine(dir);
  std::vector<Check> checks = std::move(found.checks);
  if (wish.site) {
    CAIRN_ASSIGN_OR_RETURN(checks, CheckSite(wish.partition, dir, found));
  }
  const auto count = [&](Finding finding) {
    return static_cast<size_t>(
        std::count_if(checks.begin(), checks.end(), [=](const Check& c) { return c.finding == finding; }));
  };
  const size_t problems = count(Finding::kProblem), warnings = count(Finding::kWarning);
  if (json) {
    Json out = Json::array();
    for (const Check& c : checks) {
      out.push_back({{"check", c.what},
                     {"finding", FindingName(c.finding)},
                     {"text", c.text},
                     {"remedy", c.remedy.empty() ? Json() : Json(c.remedy)}});
    }
    Json document{
        {"host", found.host}, {"problems", problems}, {"warnings", warnings}, {"checks", std::move(out)}};
    if (!wish.site) document["facts"] = found.facts;
    PrintJson(document);
  } else {
    for (const Check& c : checks) {
      std::printf("%-7s  %-16s  %s\n",
                  c.finding == Finding::kGood ? "OK" : std::string(FindingName(c.finding)).c_str(),
                  c.what.c_str(), c.text.c_str());
      if (!c.remedy.empty()) std::printf("%27s-> %s\n", "", c.remedy.c_str());
    }
    std::printf("%s, %s\n", Count(problems, "problem").c_str(), Count(warnings, "warning").c_str());
  }
  return problems == 0 ? kExitGood : kExitBad;
}

}  // namespace

void AddDoctor(CLI::App* app, Invocation* invocation) {
  auto wish = std::make_shared<Wish>();
  Subcommand doctor = AddSubcommand(
      app, invocation, "doctor",
      "Look for what would keep jobs from being saved and resumed, and say what to do: the plugin and its\n"
      "fit to the running Slurm, the libraries, whether the directory can do what a save needs, shared\n"
      "memory, the memory limit, and Slurm's settings about preemption and requeue. Exits 1 when it found\n"
      "a problem. On a compute node (`srun cairn doctor`) it looks at that node, in a container at what "
      "this\n"
      "lacks; with --site, from a login node, at all nodes that have CPUs to spare, and at what differs\n"
      "between them and this host.",
      "cairn doctor /scratch/me", [=] { return Doctor(*wish, invocation->json); });
  doctor
      .Positional("DIR", &wish->dir,
                  "where checkpoints are to be kept (default: $CAIRN_DIR, else the current directory)")
      .Optional();
  const Argument site =
      doctor.Flag("--site", &wish->site, "examine the nodes of the cluster, and compare them");
  doctor.Option("--partition", "NAME", &wish->partition, "only the nodes of this partition").Needs(site);
}

}  // namespace cairn
