// Site: `cairn doctor --site`, the checks of one host made on all nodes of a cluster.
//
//   1. sinfo says which nodes there are. Those with CPUs to spare are asked, each once, in the partition of the lowest tier that
//      has it: nobody is preempted for it. The others are named.
//   2. One srun for each such partition starts `cairn doctor --json` on its nodes, one task a node, without protection.
//   3. What the nodes say of themselves is compared, with this host as well; what several nodes find wrong is one line.
//
// Blocking; one thread. The parsers and Compare are pure.
#ifndef CAIRN_RUNTIME_COMMAND_DOCTOR_SITE_H_
#define CAIRN_RUNTIME_COMMAND_DOCTOR_SITE_H_

#include <optional>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/command/doctor.h"

namespace cairn {

struct SiteNodes {
  struct Group {
    std::string partition;
    std::vector<std::string> nodes;
  };
  std::vector<Group> groups;
  std::vector<std::string> left_out;  // "n4 (down*)"
};

// Of `sinfo --noheader --Node --format=%N|%R|%p|%T`.
SiteNodes ChooseNodes(const std::string& sinfo);

// What one node has said.
struct NodeAnswer {
  std::string node;                    // Slurm's name
  std::optional<Diagnosis> diagnosis;  // nothing: it said something else, or nothing
  std::string text;                    // that, the last line of it
};

// Of `srun --label`: of each task the node's name and what `cairn doctor --json` prints there.
std::vector<NodeAnswer> ParseAnswers(const std::string& labelled);

std::vector<Check> Compare(const Diagnosis& here, const std::vector<NodeAnswer>& answers);

// `partition`: that one's nodes alone; "" = all. kInvalid within a job; where Slurm does not answer, that is a finding.
Result<std::vector<Check>> CheckSite(const std::string& partition, const std::string& dir,
                                     const Diagnosis& here);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_DOCTOR_SITE_H_
