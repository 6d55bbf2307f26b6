// HttpRequest and HttpAnswer: one exchange with a server, as a value.
#ifndef CAIRN_RUNTIME_S3_HTTP_H_
#define CAIRN_RUNTIME_S3_HTTP_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

// What a request is signed with (AWS Signature Version 4). A session's token is a header of the request.
struct HttpSignature {
  std::string key_id, secret, region;
};

// Where the next bytes of a body go.
struct HttpPiece {
  std::byte* to = nullptr;  // nullptr: they are dropped
  size_t bytes = 0;
};

// Whose turn it is when a connection is free.
enum class HttpTurn {
  kFirst,      // small ones, which have connections of their own besides
  kBulkAgain,  // has waited already
  kBulk,
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // path and query encoded, the query sorted
  std::map<std::string, std::string> headers;
  std::span<const std::byte> body;  // of PUT and POST, with a Content-Type; stays as it is until the answer
  std::optional<HttpSignature> signature;
  std::vector<HttpPiece> into;           // takes the body of an answer 206; empty: every body is a text
  uint64_t max_text = 64 << 10;          // of a text that is no error; a longer one is not read to its end
  bool direct = false;                   // past the proxies of the environment
  std::chrono::milliseconds timeout{0};  // of the whole exchange; 0 = as long as bytes move
  std::chrono::milliseconds stall{0};    // cut off when nothing moves for so long; 0 = what Transfers say
  uint64_t least_rate = 0;  // bytes per second, over `stall`: what moves more slowly counts as standing still
  HttpTurn turn = HttpTurn::kFirst;
};

struct HttpAnswer {
  Status lost;     // why there is no whole answer; what was asked for may have been done
  int status = 0;  // 200, …
  std::map<std::string, std::string> headers;  // names in lower case
  std::string text;
  bool text_ended = true;    // false: it is longer than max_text
  bool into_filled = false;  // `into` took all that it asked for
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_HTTP_H_
