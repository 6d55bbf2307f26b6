#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "runtime/command/doctor.h"

namespace cairn {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Device and folder of what is mounted at "/", by a mountinfo file; "" = nothing is: the root is a folder of some mount.
std::string RootMount(const std::string& mountinfo) {
  std::istringstream lines(mountinfo);
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id, parent, device, folder, mount_point;
    if (fields >> id >> parent >> device >> folder >> mount_point && mount_point == "/")
      found = device + " " + folder;
  }
  return found;
}

// The numbers of the Unix sockets of a network, by /proc/<pid>/net/unix. No two sockets of a machine have the same.
std::set<std::string> SocketNumbers(const std::string& text) {
  std::istringstream lines(text);
  std::set<std::string> numbers;
  std::string line;
  std::getline(lines, line);  // the header
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string address, count, protocol, flags, type, state, number;
    if (fields >> address >> count >> protocol >> flags >> type >> state >> number && number != "0")
      numbers.insert(number);
  }
  return numbers;
}

Check CheckRoot(const std::string& proc) {
  const std::string nodes = ReadText(proc + "/1/mountinfo");
  if (nodes.empty())
    return {"container", Finding::kGood,
            "whether this is one cannot be told: /proc does not show the node's mounts", ""};
  if (RootMount(ReadText(proc + "/self/mountinfo")) == RootMount(nodes))
    return {"container", Finding::kGood, "none: the root is the node's", ""};
  return {"container", Finding::kGood,
          "a root of its own: what is not mounted into it is not here (docs/containers.md)", ""};
}

// What srun names to its tasks must be in their root.
std::vector<Check> CheckHandOver(const std::string& root, const GetVariable& get) {
  std::vector<std::string> named;
  std::istringstream preloads(get("LD_PRELOAD").value_or(""));
  for (std::string path; std::getline(preloads, path, ':');) {
    if (path.ends_with("/libcairn_preload.so")) named.push_back(path);
  }
  if (const auto library = get("SLURM_CAIRN_LIB")) named.push_back(*library);
  if (named.empty()) return {};
  const auto missing = std::find_if(named.begin(), named.end(), [&](const std::string& path) {
    return access((root + path).c_str(), R_OK) != 0;
  });
  if (missing == named.end())
    return {{"hand-over", Finding::kGood, "the libraries that srun names are here", ""}};
  return {{"hand-over", Finding::kProblem, *missing + ", which srun names, is not here",
           "mount Cairn's prefix at the path that it has on the node"}};
}

std::vector<Check> CheckNetwork(const std::string& proc) {
  const std::set<std::string> ours = SocketNumbers(ReadText(proc + "/self/net/unix"));
  const std::set<std::string> nodes = SocketNumbers(ReadText(proc + "/1/net/unix"));
  if (nodes.empty()) return {};  // of another user's process /proc may show nothing
  const bool shared =
      std::any_of(nodes.begin(), nodes.end(), [&](const auto& n) { return ours.contains(n); });
  if (shared) return {{"network", Finding::kGood, "the node's", ""}};
  return {
      {"network", Finding::kProblem,
       "one of its own: the ranks of other containers and nodes are not reached, at their sockets neither",
       "start the container with the network of the node"}};
}

}  // namespace

std::vector<Check> CheckContainer(const std::string& root, const GetVariable& get) {
  const std::string proc = root + "/proc";
  std::vector<Check> checks = {CheckRoot(proc)};
  for (const std::vector<Check>& more : {CheckHandOver(root, get), CheckNetwork(proc)})
    checks.insert(checks.end(), more.begin(), more.end());
  return checks;
}

}  // namespace cairn
