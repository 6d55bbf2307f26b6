#include "runtime/s3/transfer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

#include "runtime/io/fork_guard.h"

namespace cairn {
namespace {

constexpr long kBuffer = 512 << 10;          // of each connection, in either direction
constexpr uint64_t kMostOfError = 64 << 10;  // what a server says of a request that it refuses

// libcurl's callbacks.

curl_socket_t OpenSocket(void*, curlsocktype, curl_sockaddr* address) {
  const int fd = socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->protocol);
  if (fd < 0) return CURL_SOCKET_BAD;
  ForkGuard::Own(fd);
  return fd;
}

int CloseSocket(void*, curl_socket_t fd) { return ForkGuard::Disown(fd) ? close(fd) : 0; }

size_t OnHeader(char* line, size_t, size_t bytes, void* data) {
  auto* transfer = static_cast<Transfer*>(data);
  const std::string_view text(line, bytes);
  if (text.substr(0, 5) == "HTTP/") {
    long status = 0;
    transfer->curl->easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    transfer->answer.status = static_cast<int>(status);
    transfer->answer.headers.clear();
  } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    std::string name(text.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(tolower(c)); });
    const size_t begin = std::min(text.find_first_not_of(" \t", colon + 1), text.size());
    const size_t end = text.find_last_not_of(" \t\r\n");
    transfer->answer.headers[name] = begin <= end ? text.substr(begin, end + 1 - begin) : "";
  }
  return bytes;
}

size_t OnBody(char* from, size_t, size_t bytes, void* data) {
  auto* transfer = static_cast<Transfer*>(data);
  HttpAnswer& answer = transfer->answer;
  if (!transfer->Fills()) {
    const uint64_t most = answer.status < 300 ? transfer->request.max_text : kMostOfError;
    const size_t room = most - answer.text.size();
    answer.text.append(from, std::min(bytes, room));
    if (bytes <= room) return bytes;
    answer.text_ended = false;
    return 0;
  }
  size_t left = bytes;
  while (left > 0 && transfer->piece < transfer->request.into.size()) {
    const HttpPiece& piece = transfer->request.into[transfer->piece];
    const size_t n = std::min(left, piece.bytes - transfer->within);
    if (piece.to != nullptr) memcpy(piece.to + transfer->within, from, n);
    from += n;
    left -= n;
    transfer->within += n;
    if (transfer->within == piece.bytes) {
      ++transfer->piece;
      transfer->within = 0;
    }
  }
  if (left == 0) return bytes;
  transfer->refused = Status(Code::kIo, "the answer is longer than what was asked for");
  return 0;
}

}  // namespace

void Transfer::SetUp(const std::string& ca_file) {
  const auto set = [&](CURLoption option, auto value) { curl->easy_setopt(easy, option, value); };
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_ERRORBUFFER, error);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // the loop does not wait for the name of a server that it has given up
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION,
      static_cast<long>(CURL_HTTP_VERSION_1_1));  // each transfer has a connection of its own
  set(CURLOPT_USERAGENT, "cairn");
  set(CURLOPT_OPENSOCKETFUNCTION, &OpenSocket);
  set(CURLOPT_CLOSESOCKETFUNCTION, &CloseSocket);
  set(CURLOPT_BUFFERSIZE, kBuffer);
  set(CURLOPT_UPLOAD_BUFFERSIZE, kBuffer);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  // A server that refuses a large body can say so before it comes; one that knows nothing of that says nothing. An empty "Expect:", to do without,
  // would be signed as if it were sent.
  set(CURLOPT_EXPECT_100_TIMEOUT_MS, 100L);
  if (!ca_file.empty()) set(CURLOPT_CAINFO, ca_file.c_str());
  if (request.direct) set(CURLOPT_NOPROXY, "*");
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));

  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method == "HEAD") set(CURLOPT_NOBODY, 1L);
  if (request.method == "PUT" || request.method == "POST") {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
  }
  set(CURLOPT_HEADERFUNCTION, &OnHeader);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &OnBody);
  set(CURLOPT_WRITEDATA, this);

  for (const auto& [name, value] : request.headers) {
    headers = curl->slist_append(headers, (name + ": " + value).c_str());
  }
  set(CURLOPT_HTTPHEADER, headers);
  if (request.signature) {
    set(CURLOPT_AWS_SIGV4, ("aws:amz:" + request.signature->region + ":s3").c_str());
    set(CURLOPT_USERNAME, request.signature->key_id.c_str());
    set(CURLOPT_PASSWORD, request.signature->secret.c_str());
  }
}

Status Transfer::Outcome(CURLcode code) const {
  if (code == CURLE_OK) return OkStatus();
  if (!refused.ok()) return refused;
  if (!answer.text_ended) return OkStatus();  // it is cut where it was meant to be
  const std::string why = error[0] != '\0' ? error : curl->easy_strerror(code);
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Status(
          Code::kPermission,
          why + " (a certificate of your own site's: name the file of its authority in AWS_CA_BUNDLE)");
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_NOT_BUILT_IN:
      return Status(Code::kInvalid, why);
    case CURLE_OUT_OF_MEMORY:
      return Status(Code::kOutOfMemory, why);
    case CURLE_OPERATION_TIMEDOUT:
      return Status(Code::kTimeout, why);
    default:
      return Status(Code::kUnavailable, why);
  }
}

curl_off_t Transfer::Moved() const {
  curl_off_t up = 0, down = 0;
  long heads_down = 0, heads_up = 0;
  curl->easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &up);
  curl->easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &down);
  curl->easy_getinfo(easy, CURLINFO_HEADER_SIZE, &heads_down);
  curl->easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &heads_up);
  return up + down + heads_down + heads_up;
}

}  // namespace cairn
