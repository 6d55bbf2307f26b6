// UniqueFd: a move-only owner of a file descriptor, known to ForkGuard: a forked child has it closed.
//
// The destructor closes and says nothing. Where close can carry the last error of a write (NFS), call
// `std::move(fd).Close(path)`.
#ifndef CAIRN_RUNTIME_IO_FD_H_
#define CAIRN_RUNTIME_IO_FD_H_

#include <string_view>
#include <utility>

#include "planner/base/status.h"

namespace cairn {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd);
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    UniqueFd taken(std::move(other));
    std::swap(fd_, taken.fd_);
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release();  // a forked child keeps it from then on

  // Closes and reports; never retried, since the descriptor is gone whatever close says. `path` is for the
  // message.
  Status Close(std::string_view path) &&;

 private:
  int fd_ = -1;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_FD_H_
