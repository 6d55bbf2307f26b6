// Transfers: the exchanges of one store with its server, all on one thread that runs a loop with libcurl's multi-socket interface.
//
// At most so many bulk ones are under way, and two small ones besides; the others wait for their turn (HttpTurn), in the order in which they came.
// One in which no byte moves for `stall` is cut off. Nothing is made again here: who asked decides.
//
// Threads: any, but the loop's own may only Start. In a forked child every method returns without doing anything: no answer comes there.
#ifndef CAIRN_RUNTIME_S3_TRANSFERS_H_
#define CAIRN_RUNTIME_S3_TRANSFERS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "planner/base/status.h"
#include "runtime/s3/http.h"

namespace cairn {

class Transfers {
 public:
  struct Options {
    int connections = 8;  // for bulk
    std::chrono::milliseconds stall{30000};
    std::string ca_file;  // "" = the system's
  };
  // Called on the loop's thread, once; must not block.
  using Done = std::function<void(HttpAnswer)>;

  // kUnavailable as LoadCurl says.
  static Result<std::unique_ptr<Transfers>> Start(const Options& options);
  // Answers what is under way as cancelled.
  ~Transfers();

  // `owner` names the transfer for Cancel. The request's memory must last until `done` has been called.
  void Begin(const void* owner, HttpRequest request, Done done);
  // Answers all of the owner's that are not answered yet as kCancelled; their memory is not touched once it returns.
  void Cancel(const void* owner);
  // Begins and waits. Not on the loop's thread.
  HttpAnswer Exchange(HttpRequest request);

 private:
  class Impl;
  explicit Transfers(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_S3_TRANSFERS_H_
