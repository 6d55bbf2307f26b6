// S3Config: which bucket, where, and how patiently; and the addresses of its objects.
//
// Pure; any thread.
#ifndef CAIRN_RUNTIME_S3_CONFIG_H_
#define CAIRN_RUNTIME_S3_CONFIG_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "planner/base/status.h"

namespace cairn {

// The value of a variable, or nothing.
using Environment = std::function<std::optional<std::string>(const std::string&)>;

// The variables of this process; empty ones count as none.
std::optional<std::string> ProcessEnvironment(const std::string& name);

struct S3Config {
  std::string bucket;
  std::string endpoint;  // "https://s3.eu-west-1.amazonaws.com", without a slash at its end
  std::string region;
  bool path_style = false;  // endpoint/bucket/key, else bucket.endpoint/key
  std::string ca_file;      // "" = the system's
  int connections = 8;

  std::chrono::milliseconds deadline{120000};  // from a request's first failure: none is made again after it
  std::chrono::milliseconds stall{30000};      // a request in which no byte moves for so long is made again
  std::chrono::milliseconds first_pause{
      100};  // the longest before the second try; twice that before each next one
  std::chrono::milliseconds longest_pause{10000};
  uint64_t part_bytes =
      8 << 20;  // the smallest part of an upload, and the longest piece that is read by one request

  // The endpoint from CAIRN_S3_ENDPOINT, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile, else that of the region at AWS; the region from
  // AWS_REGION, AWS_DEFAULT_REGION or the profile, else us-east-1; the rest from the settings. kInvalid names what cannot be.
  static Result<S3Config> FromEnvironment(const std::string& bucket, const Environment& get);

  // The address of an object ("" = of the bucket) with a query, in the form that is signed: encoded, and sorted by name.
  std::string Url(const std::string& key, const std::map<std::string, std::string>& query = {}) const;
  // "s3://bucket/key", for messages.
  std::string Name(const std::string& key) const;
};

// Percent-encoding as AWS signs it: all but letters, digits and -._~ ; a slash stays where `slashes`.
std::string UriEncode(std::string_view text, bool slashes);
// The other way round, as an answer in encoding-type=url has it: "+" is a space.
std::string UriDecode(std::string_view text);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_CONFIG_H_
