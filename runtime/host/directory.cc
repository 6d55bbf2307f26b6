#include "runtime/host/directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "runtime/io/file.h"
#include "runtime/io/stores.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxOrdinal = 100000;

Result<std::string> Expand(char letter, const StepIdentity& step) {
  switch (letter) {
    case 'j':
      return std::to_string(step.job);
    case 'A':
      return std::to_string(step.array_job.value_or(step.job));
    case 'a':
      if (!step.array_task)
        return Status(Code::kInvalid, "%a stands for an array's task, and this job is not one");
      return std::to_string(*step.array_task);
    case 'x':
      return step.job_name;
    case 'u':
      return step.user;
    case 's':
      return std::to_string(step.step);
    case '%':
      return std::string("%");
    default:
      return Status(Code::kInvalid, "only %j, %A, %a, %x, %u, %s and %% expand");
  }
}

std::string FileName(const std::string& name) {
  std::string out = name.empty() ? "step" : name;
  std::replace_if(
      out.begin(), out.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; }, '_');
  if (out.front() == '.') out.front() = '_';
  return out.substr(0, 128);
}

}  // namespace

Result<std::string> ExpandDirectory(std::string_view option, std::string_view text, const StepIdentity& step,
                                    const std::string& base) {
  const std::string quoted = std::string(option) + "=" + std::string(text);
  std::string out;
  bool names_task = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const char letter = i + 1 < text.size() ? text[++i] : '\0';
    auto value = Expand(letter, step);
    if (!value.ok()) return value.status().Annotate(quoted);
    names_task = names_task || letter == 'a';
    out += *value;
  }
  if (out.find('\n') != std::string::npos)
    return Status(Code::kInvalid, quoted + ": a line break is not allowed");
  if (step.array_task && !names_task) out += "/task-" + std::to_string(*step.array_task);
  if (!IsObjectPath(out) && fs::path(out).is_relative()) out = fs::path(base) / out;
  return AbsolutePath(out);
}

Result<std::string> ClaimDefaultDirectory(const std::string& submit_dir, const StepIdentity& step,
                                          const std::string& step_name) {
  const fs::path job = fs::path(submit_dir) / ("cairn-" + std::to_string(step.job));
  const fs::path use = job / ".use";
  std::error_code error;
  fs::create_directories(use, error);
  if (error) return Status::FromErrno(error.value(), "create " + use.string());
  const std::string name = FileName(step_name);
  for (int n = 1; n <= kMaxOrdinal; ++n) {
    const fs::path claim = use / (std::to_string(step.restart) + "." + name + "." + std::to_string(n));
    const int fd = open(claim.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0) {
      close(fd);
      return (job / (n == 1 ? name : name + "-" + std::to_string(n))).lexically_normal().string();
    }
    if (errno != EEXIST) return Status::FromErrno(errno, "create " + claim.string());
  }
  return Status(Code::kExists, "too many steps named " + name + " in this job");
}

bool DirectoryAllowed(const std::string& dir, std::string_view allowed) {
  if (allowed.empty()) return true;
  while (!allowed.empty()) {
    const size_t scheme = IsObjectPath(allowed) ? kObjectScheme.size() : 0;
    const size_t colon = std::min(allowed.find(':', scheme), allowed.size());
    const std::string entry(allowed.substr(0, colon));
    allowed.remove_prefix(std::min(colon + 1, allowed.size()));
    if (!entry.empty() && LiesIn(dir, entry)) return true;
  }
  return false;
}

}  // namespace cairn
