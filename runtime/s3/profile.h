// Profile: what the shared files of AWS's tools say, ~/.aws/config and ~/.aws/credentials.
//
// Threads: any.
#ifndef CAIRN_RUNTIME_S3_PROFILE_H_
#define CAIRN_RUNTIME_S3_PROFILE_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "planner/base/status.h"
#include "runtime/s3/config.h"

namespace cairn {

// Section → name → value. Comments, blank lines, what is indented (nested values) and lines that are neither are passed over, as those tools do.
using IniSections = std::map<std::string, std::map<std::string, std::string>>;
IniSections ParseIni(std::string_view text);

struct Profile {
  std::string name;
  bool named = false;  // by AWS_PROFILE, rather than the default
  std::string credentials_path, config_path;
  std::map<std::string, std::string> credentials, config;  // of this profile; empty where there is none

  // From the credentials file, else from the config file.
  std::optional<std::string> Get(const std::string& key) const;
};

// The profile AWS_PROFILE (or AWS_DEFAULT_PROFILE, else "default") in AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE, else in those below HOME.
// Files that are not there are empty; kPermission and others where one cannot be read, kInvalid when a named profile is in neither.
Result<Profile> ReadProfile(const Environment& get);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_PROFILE_H_
