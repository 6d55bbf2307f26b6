#include "runtime/command/doctor_site.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <tuple>

#include "runtime/command/text.h"
#include "runtime/slurm/run_now.h"

namespace cairn {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kSinfoBound{30};
constexpr int kWaitSeconds = 60;  // for nodes that were idle a moment ago
constexpr int kNodeSeconds = 60;  // for what a node looks at; its file systems may hang
constexpr std::chrono::seconds kSrunBound{kWaitSeconds + kNodeSeconds + 60};

// A fact, and what it means when it is not the same everywhere.
struct Compared {
  const char* fact;
  bool here_too;  // the host that asks should have it in common with the nodes
  Finding finding;
  const char* remedy;
};
constexpr std::array<Compared, 9> kCompared = {{
    {"version", true, Finding::kProblem, "install one version of Cairn on all hosts"},
    {"program", true, Finding::kProblem, "install the same tree at the same path on all hosts"},
    {"libcairn", true, Finding::kProblem, "install the same tree at the same path on all hosts"},
    {"plugin", true, Finding::kProblem, "install the same plugin at the same path on all hosts"},
    {"plugin_line", true, Finding::kProblem,
     "give all hosts the same line in plugstack.conf; slurmd is restarted once after it was added"},
    {"slurm", true, Finding::kWarning,
     "a plugin is loaded by the release of Slurm that it was built for alone: upgrade the rest, or name "
     "another path there"},
    {"open_files", false, Finding::kWarning, "give slurmd the same LimitNOFILE on all nodes"},
    {"locked_memory", false, Finding::kWarning, "give slurmd the same LimitMEMLOCK on all nodes"},
    {"shared_memory", false, Finding::kWarning,
     "a job that spans such nodes stages what the smallest holds: mount /dev/shm alike, or give the nodes a "
     "partition of their own"},
}};

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

Finding ToFinding(const std::string& name) {
  return name == "problem" ? Finding::kProblem : name == "warning" ? Finding::kWarning : Finding::kGood;
}

std::optional<Diagnosis> ParseDiagnosis(const std::string& node, const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  try {
    Diagnosis out{node, {}, {}};
    for (const auto& [name, value] : json.at("facts").items()) out.facts[name] = value.get<std::string>();
    for (const Json& check : json.at("checks")) {
      out.checks.push_back({check.at("check").get<std::string>(),
                            ToFinding(check.at("finding").get<std::string>()),
                            check.at("text").get<std::string>(),
                            check.at("remedy").is_null() ? "" : check.at("remedy").get<std::string>()});
    }
    return out;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

// "n[1-3],n7", by Slurm where that is shorter.
std::string NodeList(const std::vector<std::string>& nodes) {
  constexpr size_t kFew = 4;
  std::string list;
  for (const std::string& node : nodes) list += (list.empty() ? "" : ",") + node;
  if (nodes.size() <= kFew) return list;
  const auto folded = RunNow({"scontrol", "show", "hostlist", list}, kSinfoBound);
  return folded.ok() && !folded->empty() ? folded->substr(0, folded->find('\n')) : list;
}

Check CompareFact(const Compared& compared, const Diagnosis& here, const std::vector<NodeAnswer>& answers) {
  std::map<std::string, std::vector<std::string>> hosts_of;  // by value
  const auto add = [&](const Diagnosis& d) {
    const auto fact = d.facts.find(compared.fact);
    hosts_of[fact == d.facts.end() ? "not known" : fact->second].push_back(d.host);
  };
  for (const NodeAnswer& answer : answers) {
    if (answer.diagnosis) add(*answer.diagnosis);
  }
  if (compared.here_too) add(here);
  Check check{compared.fact, Finding::kGood, "", ""};
  if (hosts_of.size() == 1) {
    check.text = hosts_of.begin()->first + ", everywhere";
    return check;
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> groups(hosts_of.begin(), hosts_of.end());
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();  // what is odd comes first
  });
  check.finding = compared.finding;
  check.remedy = compared.remedy;
  for (const auto& [value, hosts] : groups)
    check.text += (check.text.empty() ? "" : "; ") + NodeList(hosts) + ": " + value;
  return check;
}

// What is wrong on nodes, each finding once.
std::vector<Check> NodesFindings(const std::vector<NodeAnswer>& answers) {
  std::vector<std::pair<Check, std::vector<std::string>>> found;  // in the order of the nodes' own reports
  size_t answered = 0;
  for (const NodeAnswer& answer : answers) {
    if (!answer.diagnosis) continue;
    ++answered;
    for (const Check& check : answer.diagnosis->checks) {
      if (check.finding == Finding::kGood) continue;
      const auto same = std::find_if(found.begin(), found.end(), [&](const auto& other) {
        return std::tie(other.first.what, other.first.text) == std::tie(check.what, check.text);
      });
      if (same == found.end()) {
        found.push_back({check, {answer.node}});
      } else {
        same->second.push_back(answer.node);
      }
    }
  }
  std::vector<Check> checks;
  for (auto& [check, nodes] : found) {
    check.text = (nodes.size() == answered ? "all nodes" : NodeList(nodes)) + ": " + check.text;
    checks.push_back(std::move(check));
  }
  return checks;
}

// The nodes' answers, or why there are none.
Result<std::vector<NodeAnswer>> AskNodes(const SiteNodes::Group& group, const std::string& dir) {
  std::error_code ignored;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  const std::string count = std::to_string(group.nodes.size());
  std::string nodes;
  for (const std::string& node : group.nodes) nodes += (nodes.empty() ? "" : ",") + node;
  CAIRN_ASSIGN_OR_RETURN(
      const std::string output,
      RunNow({"env", "CAIRN_CHECKPOINT=off", "srun", "--partition=" + group.partition, "--nodes=" + count,
              "--ntasks=" + count, "--ntasks-per-node=1", "--nodelist=" + nodes,
              "--immediate=" + std::to_string(kWaitSeconds), "--time=5", "--job-name=cairn-doctor",
              "--input=none", "--label", "--kill-on-bad-exit=0", "sh", "-c",
              "echo \"$SLURMD_NODENAME\"; timeout " + std::to_string(kNodeSeconds) +
                  " \"$0\" doctor --json \"$1\" 2>&1; "
                  "[ $? -ne 124 ] || echo \"no answer within " +
                  std::to_string(kNodeSeconds) + " s\"; exit 0",
              program, dir},
             kSrunBound));
  std::vector<NodeAnswer> answers = ParseAnswers(output);
  for (const std::string& node : group.nodes) {
    const bool heard = std::any_of(answers.begin(), answers.end(),
                                   [&](const NodeAnswer& answer) { return answer.node == node; });
    if (!heard) answers.push_back({node, std::nullopt, "nothing"});
  }
  return answers;
}

}  // namespace

SiteNodes ChooseNodes(const std::string& sinfo) {
  struct Place {
    int tier;
    std::string partition;
  };
  std::map<std::string, Place> free;         // by node
  std::map<std::string, std::string> state;  // of every node
  for (const std::string& line : Split(sinfo, '\n')) {
    const std::vector<std::string> field = Split(line, '|');
    if (field.size() != 4) continue;
    state[field[0]] = field[3];
    if (field[3] != "idle" && field[3] != "mixed") continue;
    const Place place{std::atoi(field[2].c_str()), field[1]};
    const auto known = free.emplace(field[0], place).first;
    if (place.tier < known->second.tier) known->second = place;
  }
  SiteNodes out;
  for (const auto& [node, place] : free) {
    auto group =
        std::find_if(out.groups.begin(), out.groups.end(),
                     [&place = place](const SiteNodes::Group& g) { return g.partition == place.partition; });
    if (group == out.groups.end()) group = out.groups.insert(group, {place.partition, {}});
    group->nodes.push_back(node);
  }
  for (const auto& [node, how] : state) {
    if (free.find(node) == free.end()) out.left_out.push_back(node + " (" + how + ")");
  }
  return out;
}

std::vector<NodeAnswer> ParseAnswers(const std::string& labelled) {
  std::map<int, std::vector<std::string>> lines;  // by task
  for (const std::string& line : Split(labelled, '\n')) {
    const size_t colon = line.find(": ");
    const size_t digits = line.find_first_not_of(" 0123456789");
    if (colon == std::string::npos || digits != colon) continue;
    lines[std::atoi(line.c_str())].push_back(line.substr(colon + 2));
  }
  std::vector<NodeAnswer> answers;
  for (const auto& [task, said] : lines) {
    std::string text;
    for (size_t i = 1; i < said.size(); ++i) text += said[i] + "\n";
    answers.push_back(
        {said.front(), ParseDiagnosis(said.front(), text), said.size() > 1 ? said.back() : "nothing"});
  }
  return answers;
}

std::vector<Check> Compare(const Diagnosis& here, const std::vector<NodeAnswer>& answers) {
  std::vector<Check> checks;
  for (const NodeAnswer& answer : answers) {
    if (answer.diagnosis) continue;
    checks.push_back({"nodes", Finding::kProblem,
                      answer.node + " could not be examined: " + here.facts.at("program") +
                          " doctor --json said there: " + answer.text,
                      "install Cairn at the same path on all hosts"});
  }
  const bool any = std::any_of(answers.begin(), answers.end(),
                               [](const NodeAnswer& answer) { return answer.diagnosis.has_value(); });
  if (!any) return checks;
  for (const Compared& compared : kCompared) checks.push_back(CompareFact(compared, here, answers));
  const std::vector<Check> findings = NodesFindings(answers);
  checks.insert(checks.end(), findings.begin(), findings.end());
  return checks;
}

Result<std::vector<Check>> CheckSite(const std::string& partition, const std::string& dir,
                                     const Diagnosis& here) {
  if (std::getenv("SLURM_JOB_ID") != nullptr)
    return Status(Code::kInvalid,
                  "--site starts a job of its own: call it on a login node, not within a job");
  std::vector<std::string> sinfo = {"sinfo", "--noheader", "--Node", "--format=%N|%R|%p|%T"};
  if (!partition.empty()) sinfo.push_back("--partition=" + partition);
  const Result<std::string> said = RunNow(std::move(sinfo), kSinfoBound);
  if (!said.ok()) {
    return std::vector<Check>{{"nodes", Finding::kProblem,
                               "Slurm does not say which nodes there are: " + said.status().message(),
                               "look at slurmctld, and at SLURM_CONF"}};
  }
  const SiteNodes nodes = ChooseNodes(*said);
  std::vector<Check> checks;
  std::vector<NodeAnswer> answers;
  for (const SiteNodes::Group& group : nodes.groups) {
    Result<std::vector<NodeAnswer>> some = AskNodes(group, dir);
    if (some.ok()) {
      answers.insert(answers.end(), some->begin(), some->end());
      continue;
    }
    checks.push_back(
        {"nodes", Finding::kProblem,
         NodeList(group.nodes) + " of partition " + group.partition +
             " could not be examined: " + some.status().message(),
         "you must be allowed to start jobs there; where the nodes were taken meanwhile, try again"});
  }
  if (!nodes.left_out.empty()) {
    checks.push_back({"nodes", Finding::kWarning, "not examined: " + Join(nodes.left_out),
                      "only nodes with CPUs to spare are: call it again when these are up and free"});
  }
  if (nodes.groups.empty() && nodes.left_out.empty())
    checks.push_back({"nodes", Finding::kProblem,
                      partition.empty() ? "Slurm has none" : "partition " + partition + " has none", ""});
  std::vector<std::string> examined;
  for (const NodeAnswer& answer : answers) {
    if (answer.diagnosis) examined.push_back(answer.node);
  }
  if (!examined.empty())
    checks.insert(checks.begin(), {"nodes", Finding::kGood, "examined: " + NodeList(examined), ""});
  const std::vector<Check> more = Compare(here, answers);
  checks.insert(checks.end(), more.begin(), more.end());
  return checks;
}

}  // namespace cairn
