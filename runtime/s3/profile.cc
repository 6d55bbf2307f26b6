#include "runtime/s3/profile.h"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

namespace cairn {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

Result<IniSections> ReadIni(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return IniSections{};
    return Status::FromErrno(errno, "read " + path);
  }
  std::stringstream text;
  text << file.rdbuf();
  return ParseIni(text.str());
}

}  // namespace

IniSections ParseIni(std::string_view text) {
  IniSections sections;
  std::map<std::string, std::string>* section = nullptr;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view raw = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string_view line = Trim(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      const size_t close = line.find(']');
      section =
          close == std::string_view::npos ? nullptr : &sections[std::string(Trim(line.substr(1, close - 1)))];
      continue;
    }
    const size_t equals = line.find('=');
    if (section == nullptr || equals == std::string_view::npos || raw[0] == ' ' || raw[0] == '\t') continue;
    std::string_view value = Trim(line.substr(equals + 1));
    for (const char* comment : {" #", " ;", "\t#", "\t;"}) value = Trim(value.substr(0, value.find(comment)));
    (*section)[std::string(Trim(line.substr(0, equals)))] = value;
  }
  return sections;
}

std::optional<std::string> Profile::Get(const std::string& key) const {
  for (const auto* values : {&credentials, &config}) {
    if (const auto at = values->find(key); at != values->end() && !at->second.empty()) return at->second;
  }
  return std::nullopt;
}

Result<Profile> ReadProfile(const Environment& get) {
  Profile profile;
  std::optional<std::string> name = get("AWS_PROFILE");
  if (!name) name = get("AWS_DEFAULT_PROFILE");
  profile.named = name.has_value();
  profile.name = name.value_or("default");

  std::string home = get("HOME").value_or("");
  if (home.empty()) {
    if (const passwd* user = getpwuid(getuid()); user != nullptr) home = user->pw_dir;
  }
  profile.credentials_path = get("AWS_SHARED_CREDENTIALS_FILE").value_or(home + "/.aws/credentials");
  profile.config_path = get("AWS_CONFIG_FILE").value_or(home + "/.aws/config");
  CAIRN_ASSIGN_OR_RETURN(IniSections credentials, ReadIni(profile.credentials_path));
  CAIRN_ASSIGN_OR_RETURN(IniSections config, ReadIni(profile.config_path));
  const std::string section =
      profile.name == "default" && config.count("default") != 0 ? "default" : "profile " + profile.name;
  if (profile.named && credentials.count(profile.name) == 0 && config.count(section) == 0) {
    return Status(Code::kInvalid, "AWS_PROFILE names '" + profile.name + "', which is in neither " +
                                      profile.credentials_path + " nor " + profile.config_path);
  }
  profile.credentials = std::move(credentials[profile.name]);
  profile.config = std::move(config[section]);
  return profile;
}

}  // namespace cairn
