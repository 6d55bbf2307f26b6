#include "runtime/s3/config.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/s3/profile.h"
#include "runtime/settings.h"

namespace cairn {
namespace {

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Status CheckBucket(const std::string& bucket) {
  const bool good = bucket.size() >= 3 && bucket.size() <= 255 && bucket.front() != '.' &&
                    std::all_of(bucket.begin(), bucket.end(), [](char c) { return IsPlain(c) && c != '~'; });
  if (good) return OkStatus();
  return Status(
      Code::kInvalid,
      "'" + bucket +
          "' is no name of a bucket: write s3://BUCKET/FOLDER, with letters, digits, '.', '-' and '_'");
}

// The first variable that is set.
std::optional<std::string> FirstOf(const Environment& get, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (auto value = get(name); value && !value->empty()) return value;
  }
  return std::nullopt;
}

std::string HostOfAws(const std::string& region) {
  return "s3." + region + (region.rfind("cn-", 0) == 0 ? ".amazonaws.com.cn" : ".amazonaws.com");
}

}  // namespace

std::optional<std::string> ProcessEnvironment(const std::string& name) {
  const char* value = getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

Result<S3Config> S3Config::FromEnvironment(const std::string& bucket, const Environment& get) {
  CAIRN_RETURN_IF_ERROR(CheckBucket(bucket));
  CAIRN_ASSIGN_OR_RETURN(const Settings settings, ParseSettings(get));
  CAIRN_ASSIGN_OR_RETURN(const Profile profile, ReadProfile(get));
  S3Config config;
  config.bucket = bucket;
  config.region = FirstOf(get, {"AWS_REGION", "AWS_DEFAULT_REGION"})
                      .value_or(profile.Get("region").value_or("us-east-1"));
  config.ca_file = get("AWS_CA_BUNDLE").value_or(profile.Get("ca_bundle").value_or(""));
  config.connections = settings.s3_connections;
  config.deadline = std::chrono::duration_cast<std::chrono::milliseconds>(settings.s3_deadline);
  config.stall = std::chrono::duration_cast<std::chrono::milliseconds>(settings.s3_stall);

  std::optional<std::string> endpoint = settings.s3_endpoint;
  if (!endpoint) endpoint = FirstOf(get, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (!endpoint) endpoint = profile.Get("endpoint_url");
  if (endpoint) {
    while (endpoint->size() > 1 && endpoint->back() == '/') endpoint->pop_back();
    const size_t scheme = endpoint->rfind("https://", 0) == 0  ? 8
                          : endpoint->rfind("http://", 0) == 0 ? 7
                                                               : 0;
    if (scheme == 0 || endpoint->size() == scheme || endpoint->find_first_of("?#@ ") != std::string::npos) {
      return Status(Code::kInvalid, "the endpoint of S3 is '" + *endpoint +
                                        "': it must be http://HOST[:PORT] or https://HOST[:PORT]");
    }
    config.endpoint = *endpoint;
  } else {
    config.endpoint = "https://" + HostOfAws(config.region);
  }
  switch (settings.s3_style) {
    case S3Style::kAuto:  // a certificate of *.HOST does not hold for a bucket with dots
      config.path_style = endpoint.has_value() || bucket.find('.') != std::string::npos;
      break;
    case S3Style::kPath:
      config.path_style = true;
      break;
    case S3Style::kVirtual:
      config.path_style = false;
      break;
  }
  return config;
}

std::string S3Config::Url(const std::string& key, const std::map<std::string, std::string>& query) const {
  std::string url = endpoint;
  if (path_style) {
    url += "/" + bucket;
  } else {
    url.insert(url.find("//") + 2, bucket + ".");
  }
  if (!path_style || !key.empty()) url += "/" + UriEncode(key, true);
  std::map<std::string, std::string> encoded;  // the order that is signed is that of the encoded names
  for (const auto& [name, value] : query) encoded[UriEncode(name, false)] = UriEncode(value, false);
  char before = '?';
  for (const auto& [name, value] : encoded) {
    url += before + name + "=" + value;
    before = '&';
  }
  return url;
}

std::string S3Config::Name(const std::string& key) const { return "s3://" + bucket + "/" + key; }

std::string UriEncode(std::string_view text, bool slashes) {
  std::string out;
  for (const char c : text) {
    if (IsPlain(c) || (slashes && c == '/')) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
    }
  }
  return out;
}

std::string UriDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
    const int low = high >= 0 ? HexValue(text[i + 2]) : -1;
    if (low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace cairn
