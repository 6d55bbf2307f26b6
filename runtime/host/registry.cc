#include "runtime/host/registry.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace cairn {

std::string RegistryPath() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/cairn/runs.jsonl";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.local/state/cairn/runs.jsonl" : "";
}

Status AppendToRegistry(const std::string& path, const std::string& event, const StepIdentity& step,
                        const std::string& dir, int64_t saved_step) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return Status::FromErrno(error.value(), "create the folder of " + path);
  const std::string line =
      nlohmann::ordered_json{
          {"event", event}, {"job", step.job},       {"step", step.step},        {"restart", step.restart},
          {"dir", dir},     {"name", step.job_name}, {"saved_step", saved_step}, {"time", std::time(nullptr)}}
          .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
      "\n";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return Status::FromErrno(errno, "open " + path);
  const ssize_t n = write(fd, line.data(), line.size());
  const int write_error = n < 0 ? errno : ENOSPC;
  close(fd);
  return n == static_cast<ssize_t>(line.size()) ? OkStatus()
                                                : Status::FromErrno(write_error, "append to " + path);
}

bool RegistryKnowsSave(const std::string& path, uint32_t job, const std::string& dir) {
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object()) continue;
    if (entry.value("event", nlohmann::json()) == "saved" && entry.value("job", nlohmann::json()) == job &&
        entry.value("dir", nlohmann::json()) == dir) {
      return true;
    }
  }
  return false;
}

}  // namespace cairn
