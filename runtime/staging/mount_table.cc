#include "runtime/staging/mount_table.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace cairn {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool Covers(std::string_view mount_point, std::string_view path) {
  if (mount_point == "/") return true;
  return path.substr(0, mount_point.size()) == mount_point &&
         (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

}  // namespace

std::optional<std::string> MountDevice(std::string_view mountinfo, std::string_view path) {
  std::istringstream lines{std::string(mountinfo)};
  std::optional<std::string> device;
  size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id, parent, dev, root, mount_point;
    if (!(fields >> id >> parent >> dev >> root >> mount_point)) continue;
    // Of mounts on one point the last one is on top.
    if (Covers(mount_point, path) && mount_point.size() >= longest) {
      longest = mount_point.size();
      device = dev;
    }
  }
  return device;
}

bool IsPrivateMount(const std::string& path, const std::string& root) {
  const auto ours = MountDevice(ReadText(root + "/proc/self/mountinfo"), path);
  const auto nodes = MountDevice(ReadText(root + "/proc/1/mountinfo"), path);
  return ours && nodes && *ours != *nodes;
}

}  // namespace cairn
