// Curl: libcurl, found when the first path of s3:// is used. A job whose checkpoints lie in a directory never loads it, and libcairn.so asks
// for no library that a node might lack.
//
// Threads: any.
#ifndef CAIRN_RUNTIME_S3_CURL_H_
#define CAIRN_RUNTIME_S3_CURL_H_

#include <curl/curl.h>

#include "planner/base/status.h"

namespace cairn {

#define CAIRN_CURL_FUNCTIONS(X) \
  X(global_init)                \
  X(version_info)               \
  X(slist_append)               \
  X(slist_free_all)             \
  X(easy_init)                  \
  X(easy_setopt)                \
  X(easy_getinfo)               \
  X(easy_reset)                 \
  X(easy_cleanup)               \
  X(easy_strerror)              \
  X(multi_init)                 \
  X(multi_setopt)               \
  X(multi_add_handle)           \
  X(multi_remove_handle)        \
  X(multi_socket_action)        \
  X(multi_info_read)            \
  X(multi_cleanup)

// The functions of libcurl by their names without curl_.
struct Curl {
#define CAIRN_CURL_MEMBER(name) decltype(&curl_##name) name = nullptr;
  CAIRN_CURL_FUNCTIONS(CAIRN_CURL_MEMBER)
#undef CAIRN_CURL_MEMBER
};

// Loads libcurl.so.4, once in a process; it stays loaded. kUnavailable names the package when there is none, or one that is too old to sign
// the headers of a request.
Result<const Curl*> LoadCurl();

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_CURL_H_
