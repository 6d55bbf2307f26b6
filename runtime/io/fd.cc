#include "runtime/io/fd.h"

#include <unistd.h>

#include <cerrno>
#include <string>

namespace cairn {

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

Status UniqueFd::Close(std::string_view path) && {
  // EINTR from close still closes on Linux.
  if (close(Release()) != 0 && errno != EINTR) {
    return Status::FromErrno(errno, "close " + std::string(path));
  }
  return OkStatus();
}

}  // namespace cairn
