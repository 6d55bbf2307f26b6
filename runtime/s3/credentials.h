// Credentials: with what requests are signed, and the chain of places where they are looked for.
//
//   1. the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//   2. the profile in the shared credentials file, then in the config file (runtime/s3/profile.h)
//   3. the container's: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, with AWS_CONTAINER_AUTHORIZATION_TOKEN or _TOKEN_FILE
//   4. the instance's (IMDSv2), at AWS_EC2_METADATA_SERVICE_ENDPOINT, unless AWS_EC2_METADATA_DISABLED is true
//
// The first that has some is used; one that is there and cannot be read ends the search, so that nobody works under another name than was meant.
//
// Threads: any. A call may block: it may read files and ask the servers of 3 and 4.
#ifndef CAIRN_RUNTIME_S3_CREDENTIALS_H_
#define CAIRN_RUNTIME_S3_CREDENTIALS_H_

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "planner/base/status.h"
#include "runtime/s3/config.h"
#include "runtime/s3/http.h"

namespace cairn {

struct Credentials {
  std::string key_id, secret;
  std::string token;   // "" = none
  std::string source;  // for messages: "the profile 'lab' in /home/u/.aws/credentials"
  std::optional<std::chrono::system_clock::time_point> expires;
};

class CredentialsChain {
 public:
  using Clock = std::function<std::chrono::system_clock::time_point()>;

  // `exchange` makes one HTTP exchange and waits for it.
  CredentialsChain(Environment get, std::function<HttpAnswer(HttpRequest)> exchange,
                   Clock now = std::chrono::system_clock::now);

  // Those in use; looked for at first, and again from five minutes before they expire on. kPermission says where nothing was found.
  Result<Credentials> Get();
  // Looks again, after a server has said that `refused` have expired; unless another thread has done so since.
  Result<Credentials> Renew(const Credentials& refused);

 private:
  // Looks for others than `current_`; after a failure not before 30 s have passed: every request waits meanwhile.
  Status Replace();
  Result<Credentials> Find() const;
  Result<std::optional<Credentials>> FromProfile() const;
  Result<std::optional<Credentials>> FromContainer() const;
  Result<std::optional<Credentials>> FromInstance() const;
  Result<std::string> Fetch(const std::string& what, HttpRequest request) const;

  const Environment get_;
  const std::function<HttpAnswer(HttpRequest)> exchange_;
  const Clock now_;
  std::mutex mutex_;  // guards what follows
  std::optional<Credentials> current_;
  Status failed_;  // of the last Replace, and when it was
  std::chrono::system_clock::time_point failed_at_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_CREDENTIALS_H_
