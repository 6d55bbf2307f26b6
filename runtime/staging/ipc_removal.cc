#include "runtime/staging/ipc_removal.h"

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>

#include "runtime/io/file.h"

namespace cairn {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;
constexpr uint32_t kDefaultMaxSystemUid = 999;

// By increasing weight, as systemd has it.
constexpr const char* kConfigRoots[] = {"/usr/lib/systemd", "/run/systemd", "/etc/systemd"};

std::vector<std::string> ReadConfig(const std::string& root) {
  std::string main;  // only the weightiest counts
  std::map<std::string, std::string>
      drop_in;  // path by name: they are read by name, and the weightiest of one name counts
  for (const char* place : kConfigRoots) {
    const std::string path = root + place + "/logind.conf";
    if (access(path.c_str(), F_OK) == 0) main = path;
    const auto files = ListDirectory(path + ".d");
    if (!files.ok()) continue;
    for (const std::string& file : *files) {
      if (file.ends_with(".conf")) drop_in[file] = path + ".d/" + file;
    }
  }
  std::vector<std::string> texts;
  const auto read = [&](const std::string& path) {
    if (auto text = ReadAll(path, kMaxConfigBytes); text.ok()) texts.push_back(*std::move(text));
  };
  if (!main.empty()) read(main);
  for (const auto& [name, path] : drop_in) read(path);
  return texts;
}

uint32_t MaxSystemUid(const std::string& root) {
  const auto text = ReadAll(root + "/etc/login.defs", kMaxConfigBytes);
  if (!text.ok()) return kDefaultMaxSystemUid;
  std::istringstream lines(*text);
  uint32_t value = kDefaultMaxSystemUid;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key, number;
    if (words >> key >> number && key == "SYS_UID_MAX")
      value = static_cast<uint32_t>(std::strtoul(number.c_str(), nullptr, 10));
  }
  return value;
}

}  // namespace

IpcRemoval FindIpcRemoval(const std::string& root, uint32_t uid, const std::string& user) {
  if (access((root + "/run/systemd/seats").c_str(), F_OK) != 0) return IpcRemoval::kNoLogind;
  if (!RemovesIpc(ReadConfig(root))) return IpcRemoval::kOff;
  if (uid <= MaxSystemUid(root)) return IpcRemoval::kSystemUser;
  if (!user.empty() && access((root + "/var/lib/systemd/linger/" + user).c_str(), F_OK) == 0)
    return IpcRemoval::kLingers;
  return IpcRemoval::kOn;
}

bool RemovesIpc(const std::vector<std::string>& files) {
  bool removes = true;
  for (const std::string& file : files) {
    std::istringstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      std::erase(line, ' ');
      if (!line.starts_with("RemoveIPC=")) continue;
      const std::string value = line.substr(10);
      removes = value == "yes" || value == "true" || value == "on" || value == "1";
    }
  }
  return removes;
}

}  // namespace cairn
