#include "runtime/s3/curl.h"

#include <dlfcn.h>

#include <string>

namespace cairn {
namespace {

constexpr char kNeeded[] =
    "paths of s3:// need libcurl 7.88 or newer on each node (Debian and Ubuntu: the package libcurl4, or "
    "libcurl4t64; Fedora and RHEL: "
    "libcurl)";
constexpr unsigned kOldest =
    0x075800;  // signs all headers that it is given, with the hash of the body among them

Result<Curl> Load() {
  void* library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status(Code::kUnavailable, std::string(kNeeded) + ": " + dlerror());
  Curl curl;
#define CAIRN_CURL_RESOLVE(name)                                                       \
  curl.name = reinterpret_cast<decltype(&curl_##name)>(dlsym(library, "curl_" #name)); \
  if (curl.name == nullptr) return Status(Code::kUnavailable, std::string(kNeeded) + ": " + dlerror());
  CAIRN_CURL_FUNCTIONS(CAIRN_CURL_RESOLVE)
#undef CAIRN_CURL_RESOLVE
  const curl_version_info_data* version = curl.version_info(CURLVERSION_NOW);
  if (version->version_num < kOldest) {
    return Status(Code::kUnavailable, std::string(kNeeded) + "; this is " + version->version);
  }
  if (const CURLcode code = curl.global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK) {
    return Status(Code::kUnavailable, std::string("start libcurl: ") + curl.easy_strerror(code));
  }
  return curl;
}

}  // namespace

Result<const Curl*> LoadCurl() {
  static const Result<Curl> curl = Load();
  if (!curl.ok()) return curl.status();
  return &*curl;
}

}  // namespace cairn
