#include "runtime/staging/memory_room.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

namespace cairn {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// "max", or a number so large that it means the same (v1).
std::optional<uint64_t> ParseLimit(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const auto value = ParseNumber(*text);
  if (!value || *value >= uint64_t{1} << 62) return std::nullopt;
  return value;
}

// The number after `key` and blanks at the start of a line.
std::optional<uint64_t> FindLine(const std::optional<std::string>& text, std::string_view key) {
  if (!text) return std::nullopt;
  for (std::string_view line : Split(*text, '\n')) {
    if (line.substr(0, key.size()) != key) continue;
    const std::string_view rest = line.substr(key.size());
    if (rest.substr(0, 1) == " " || rest.substr(0, 1) == "\t") return ParseNumber(rest);
  }
  return std::nullopt;
}

struct Hierarchy {
  std::string mount_point;
  std::string path;  // ours, below the mount point; "" = the mount point itself
  bool v2 = false;
};

// The hierarchies that account memory, and where we are in them.
std::vector<Hierarchy> FindHierarchies(const ReadFileFunction& read) {
  const auto cgroups = read("/proc/self/cgroup");
  const auto mounts = read("/proc/self/mountinfo");
  std::vector<Hierarchy> found;
  if (!cgroups || !mounts) return found;
  for (std::string_view line : Split(*mounts, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto left = Split(line.substr(0, dash), ' ');
    const auto right = Split(line.substr(dash + 3), ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    const auto options = Split(right[2], ',');
    const bool v2 = right[0] == "cgroup2";
    if (!v2 && (right[0] != "cgroup" || std::find(options.begin(), options.end(), "memory") == options.end()))
      continue;
    const std::string_view root = left[3];
    for (std::string_view entry : Split(*cgroups, '\n')) {
      const size_t first = entry.find(':');
      const size_t second = entry.find(':', first + 1);
      if (second == std::string_view::npos) continue;
      const std::string_view names = entry.substr(first + 1, second - first - 1);
      const auto controllers = Split(names, ',');
      const bool ours = v2 ? names.empty()
                           : std::find(controllers.begin(), controllers.end(), "memory") != controllers.end();
      if (!ours) continue;
      std::string_view path = entry.substr(second + 1);
      // A mount may show only a part of the hierarchy, and a container may sit above what it sees ("/../x").
      if (root != "/")
        path = path.substr(0, root.size()) == root ? path.substr(root.size()) : std::string_view();
      if (path == "/" || path.find("..") != std::string_view::npos) path = {};
      found.push_back({std::string(left[4]), std::string(path), v2});
      break;
    }
  }
  return found;
}

void Bound(MemoryRoom& room, uint64_t limit, uint64_t used, const std::string& what) {
  const uint64_t left = limit > used ? limit - used : 0;
  if (left >= room.bytes) return;
  room.bytes = left;
  room.bound_by = what + " (" + FormatBytes(limit) + ", " + FormatBytes(used) + " used)";
}

void BoundByCgroups(MemoryRoom& room, const ReadFileFunction& read) {
  for (const Hierarchy& h : FindHierarchies(read)) {
    std::string path = h.path;
    for (;;) {
      const std::string folder = h.mount_point + path + "/";
      const auto used = ParseLimit(read(folder + (h.v2 ? "memory.current" : "memory.usage_in_bytes")));
      if (used) {
        const auto stat = read(folder + "memory.stat");
        const uint64_t cache = FindLine(stat, h.v2 ? "inactive_file" : "total_inactive_file").value_or(0);
        const uint64_t kept = *used > cache ? *used - cache : 0;
        for (const char* name : h.v2 ? std::vector<const char*>{"memory.max", "memory.high"}
                                     : std::vector<const char*>{"memory.limit_in_bytes"}) {
          if (const auto limit = ParseLimit(read(folder + name))) {
            Bound(room, *limit, kept, "memory cgroup " + (path.empty() ? "/" : path));
          }
        }
      }
      if (path.empty()) break;
      path.resize(path.rfind('/'));
    }
  }
}

void BoundBySlurm(MemoryRoom& room, const ReadFileFunction& read, const GetEnvFunction& get_env,
                  int ranks_on_node) {
  const auto number = [&](const char* name) -> uint64_t {
    const auto value = get_env(name);
    return value ? ParseNumber(*value).value_or(0) : 0;
  };
  uint64_t limit_mib = number("SLURM_MEM_PER_NODE");  // 0 = the whole node
  if (limit_mib == 0) limit_mib = number("SLURM_MEM_PER_CPU") * number("SLURM_CPUS_ON_NODE");
  if (limit_mib == 0) return;
  const uint64_t resident_kib = FindLine(read("/proc/self/status"), "VmRSS:").value_or(0);
  Bound(room, limit_mib << 20, (resident_kib << 10) * static_cast<uint64_t>(ranks_on_node),
        "Slurm's memory limit of this job");
}

void BoundByNode(MemoryRoom& room, const ReadFileFunction& read) {
  const auto meminfo = read("/proc/meminfo");
  const auto total = FindLine(meminfo, "MemTotal:");
  const auto available = FindLine(meminfo, "MemAvailable:");
  if (total && available) {
    Bound(room, *total << 10, (*total - std::min(*total, *available)) << 10, "the node's memory");
  }
}

}  // namespace

MemoryRoom ReadMemoryRoom(const ReadFileFunction& read, const GetEnvFunction& get_env, int ranks_on_node) {
  MemoryRoom room;
  BoundByCgroups(room, read);
  BoundBySlurm(room, read, get_env, ranks_on_node);
  BoundByNode(room, read);
  return room;
}

MemoryRoom ReadMemoryRoom(int ranks_on_node) {
  const auto read = [](const std::string& path) -> std::optional<std::string> {
    std::ifstream file(path);
    if (!file) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto get_env = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
  return ReadMemoryRoom(read, get_env, ranks_on_node);
}

uint64_t WithoutHeadRoom(uint64_t room_bytes) {
  const uint64_t head = std::max<uint64_t>(room_bytes / 20, 64 << 20);
  return room_bytes > head ? room_bytes - head : 0;
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace cairn
