// UniqueFd: a move-only owner of a file descriptor.
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
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }

  // Closes and reports; never retried, since the descriptor is gone whatever close says. `path` is for the
  // message.
  Status Close(std::string_view path) &&;

 private:
  int fd_ = -1;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_FD_H_
