#include "runtime/s3/credentials.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/s3/profile.h"

namespace cairn {
namespace {

using SystemClock = std::chrono::system_clock;
using nlohmann::json;

constexpr auto kRenewBefore = std::chrono::minutes(5);
constexpr auto kRenewAgain = std::chrono::seconds(30);             // at the earliest, after a failure
constexpr auto kMetadataWithin = std::chrono::milliseconds(2000);  // on most machines nobody answers there
constexpr int kMetadataTries = 3;

constexpr time_t kEndOfTime = 9000000000;  // 2255

// "2026-01-31T12:00:00Z", with or without a fraction.
std::optional<SystemClock::time_point> ParseTime(const std::string& text) {
  std::tm tm{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &tm) == nullptr) return std::nullopt;
  // The clock counts nanoseconds, and ends in 2262; some write the year 9999 for never.
  return SystemClock::from_time_t(std::clamp<time_t>(timegm(&tm), 0, kEndOfTime));
}

// The answer of both kinds of metadata servers.
Result<Credentials> ParseAnswer(const std::string& text, const std::string& source) {
  const json answer = json::parse(text, nullptr, false);
  const auto field = [&](const char* name) -> std::string {
    const auto at = answer.is_object() ? answer.find(name) : answer.end();
    return at != answer.end() && at->is_string() ? at->get<std::string>() : "";
  };
  Credentials out{field("AccessKeyId"), field("SecretAccessKey"), field("Token"), source,
                  ParseTime(field("Expiration"))};
  if (out.key_id.empty() || out.secret.empty()) {
    return Status(Code::kPermission, source + ": the answer holds no credentials" +
                                         (field("Message").empty() ? "" : ": " + field("Message")));
  }
  return out;
}

// The token goes over the wire in the clear: to this host, or to the addresses at which containers find their servers, alone.
bool MayAskUnencrypted(const std::string& url) {
  for (const char* host : {"http://127.0.0.1", "http://localhost", "http://[::1]", "http://169.254.170.2",
                           "http://169.254.170.23"}) {
    const size_t n = std::char_traits<char>::length(host);
    if (url.compare(0, n, host) == 0 && (url.size() == n || url[n] == ':' || url[n] == '/')) return true;
  }
  return false;
}

Status NotByUs(const std::string& how) {
  return Status(Code::kPermission,
                "credentials are to come by " + how +
                    ", which Cairn does not do: `eval \"$(aws configure export-credentials "
                    "--format env)\"` puts them into the environment");
}

}  // namespace

CredentialsChain::CredentialsChain(Environment get, std::function<HttpAnswer(HttpRequest)> exchange,
                                   Clock now)
    : get_(std::move(get)), exchange_(std::move(exchange)), now_(std::move(now)) {}

Result<Credentials> CredentialsChain::Get() {
  std::lock_guard lock(mutex_);
  if (!current_ || (current_->expires && now_() >= *current_->expires - kRenewBefore)) {
    const Status replaced = Replace();
    // Those at hand still hold while their source has a bad moment.
    if (!replaced.ok() && (!current_ || now_() >= *current_->expires)) return replaced;
  }
  return *current_;
}

Result<Credentials> CredentialsChain::Renew(const Credentials& refused) {
  std::lock_guard lock(mutex_);
  if (current_ && (current_->key_id != refused.key_id || current_->token != refused.token)) return *current_;
  CAIRN_RETURN_IF_ERROR(Replace());
  return *current_;
}

Status CredentialsChain::Replace() {
  if (current_ && !failed_.ok() && now_() < failed_at_ + kRenewAgain) return failed_;
  Result<Credentials> found = Find();
  failed_ = found.status();
  failed_at_ = now_();
  if (found.ok()) current_ = *std::move(found);
  return failed_;
}

Result<Credentials> CredentialsChain::Find() const {
  const auto key_id = get_("AWS_ACCESS_KEY_ID");
  const auto secret = get_("AWS_SECRET_ACCESS_KEY");
  if (key_id && secret) {
    return Credentials{*key_id, *secret, get_("AWS_SESSION_TOKEN").value_or(""),
                       "AWS_ACCESS_KEY_ID of the environment", std::nullopt};
  }
  if (key_id || secret) {
    return Status(Code::kPermission,
                  "of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY one is set and the other is not");
  }
  if (get_("AWS_WEB_IDENTITY_TOKEN_FILE")) return NotByUs("AWS_WEB_IDENTITY_TOKEN_FILE");
  for (const auto source :
       {&CredentialsChain::FromProfile, &CredentialsChain::FromContainer, &CredentialsChain::FromInstance}) {
    CAIRN_ASSIGN_OR_RETURN(std::optional<Credentials> found, (this->*source)());
    if (found) return *std::move(found);
  }
  CAIRN_ASSIGN_OR_RETURN(const Profile profile, ReadProfile(get_));
  return Status(Code::kPermission,
                "no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY where the job is "
                "submitted, or write them to the profile '" +
                    profile.name + "' in " + profile.credentials_path +
                    " where all nodes see it (neither a container nor an instance gives any here)");
}

Result<std::optional<Credentials>> CredentialsChain::FromProfile() const {
  CAIRN_ASSIGN_OR_RETURN(const Profile profile, ReadProfile(get_));
  for (const auto& [values, path] : {std::pair(&profile.credentials, &profile.credentials_path),
                                     std::pair(&profile.config, &profile.config_path)}) {
    const auto value = [values = values](const char* name) {
      const auto at = values->find(name);
      return at == values->end() ? "" : at->second;
    };
    const std::string source = "the profile '" + profile.name + "' in " + *path;
    const std::string key_id = value("aws_access_key_id"), secret = value("aws_secret_access_key");
    if (key_id.empty() != secret.empty()) {
      return Status(Code::kPermission,
                    source + " has one of aws_access_key_id and aws_secret_access_key without the other");
    }
    if (!key_id.empty())
      return std::optional(Credentials{key_id, secret, value("aws_session_token"), source, std::nullopt});
  }
  for (const char* other : {"role_arn", "sso_session", "sso_start_url", "credential_process"}) {
    if (profile.Get(other)) return NotByUs(std::string(other) + " of the profile '" + profile.name + "'");
  }
  return std::optional<Credentials>();
}

Result<std::optional<Credentials>> CredentialsChain::FromContainer() const {
  HttpRequest request;
  if (const auto relative = get_("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) {
    request.url = "http://169.254.170.2" + *relative;
  } else if (const auto full = get_("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
    if (full->rfind("https://", 0) != 0 && !MayAskUnencrypted(*full)) {
      return Status(Code::kPermission,
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or an address of this host or of its "
                    "container service: " +
                        *full);
    }
    request.url = *full;
  } else {
    return std::optional<Credentials>();
  }
  std::optional<std::string> token = get_("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const auto path = get_("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
    std::ifstream file(*path);
    std::string line;
    if (!std::getline(file, line))
      return Status(Code::kPermission, "read AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE " + *path);
    token = line;
  }
  if (token) request.headers["Authorization"] = *token;
  const std::string source = "the container's credentials at " + request.url;
  CAIRN_ASSIGN_OR_RETURN(const std::string text, Fetch(source, std::move(request)));
  CAIRN_ASSIGN_OR_RETURN(Credentials found, ParseAnswer(text, source));
  return std::optional(std::move(found));
}

Result<std::optional<Credentials>> CredentialsChain::FromInstance() const {
  if (const auto off = get_("AWS_EC2_METADATA_DISABLED");
      off && (*off == "true" || *off == "True" || *off == "TRUE")) {
    return std::optional<Credentials>();
  }
  std::string base = get_("AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("http://169.254.169.254");
  while (!base.empty() && base.back() == '/') base.pop_back();
  const std::string source = "the instance's role at " + base;

  HttpRequest ask;
  ask.method = "PUT";
  ask.url = base + "/latest/api/token";
  ask.headers["X-aws-ec2-metadata-token-ttl-seconds"] = "21600";
  const Result<std::string> token = Fetch(source, std::move(ask));
  if (!token.ok()) return std::optional<Credentials>();  // this machine is no instance
  const auto get = [&](const std::string& path) {
    HttpRequest request;
    request.url = base + "/latest/meta-data/iam/security-credentials/" + path;
    request.headers["X-aws-ec2-metadata-token"] = *token;
    return Fetch(source, std::move(request));
  };
  const Result<std::string> roles = get("");
  if (!roles.ok() && roles.status().code() == Code::kNotFound)
    return std::optional<Credentials>();  // an instance without a role
  if (!roles.ok()) return roles.status();
  const std::string role = roles->substr(0, roles->find_first_of("\r\n"));
  CAIRN_ASSIGN_OR_RETURN(const std::string text, get(UriEncode(role, false)));
  CAIRN_ASSIGN_OR_RETURN(Credentials found, ParseAnswer(text, "the instance's role '" + role + "'"));
  return std::optional(std::move(found));
}

Result<std::string> CredentialsChain::Fetch(const std::string& what, HttpRequest request) const {
  request.direct = true;
  request.timeout = kMetadataWithin;
  HttpAnswer answer;
  for (int tries = 0; tries < kMetadataTries; ++tries) {
    answer = exchange_(request);
    if (answer.lost.ok() && answer.status < 500) break;
  }
  if (!answer.lost.ok()) return answer.lost.Annotate(what);
  if (answer.status == 200) return std::move(answer.text);
  return Status(answer.status == 404 ? Code::kNotFound : Code::kPermission,
                what + " answers " + std::to_string(answer.status));
}

}  // namespace cairn
