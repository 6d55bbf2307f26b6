#include "runtime/io/fd.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "runtime/io/fork_guard.h"

namespace cairn {

UniqueFd::UniqueFd(int fd) : fd_(fd) { ForkGuard::Own(fd); }

UniqueFd::~UniqueFd() {
  if (ForkGuard::Disown(fd_)) close(fd_);
}

int UniqueFd::Release() {
  ForkGuard::Disown(fd_);
  return std::exchange(fd_, -1);
}

Status UniqueFd::Close(std::string_view path) && {
  const int fd = std::exchange(fd_, -1);
  // EINTR from close still closes on Linux.
  if (ForkGuard::Disown(fd) && close(fd) != 0 && errno != EINTR) {
    return Status::FromErrno(errno, "close " + std::string(path));
  }
  return OkStatus();
}

}  // namespace cairn
