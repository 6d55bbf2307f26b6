#include "runtime/io/new_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <span>
#include <utility>

namespace cairn {

NewFiles::~NewFiles() {
  for (const std::string& path : paths_) {
    // A store that is away would have each of them waited for.
    if (RemoveFile(path).code() == Code::kUnavailable) return;
  }
}

Result<UniqueFd> NewFiles::Create(const std::string& path) {
  CAIRN_ASSIGN_OR_RETURN(UniqueFd file, OpenFile(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW));
  paths_.push_back(path);
  if (mode_ && fchmod(file.get(), static_cast<mode_t>(*mode_)) != 0)
    return Status::FromErrno(errno, "chmod " + path);
  return file;
}

Result<UniqueFd> NewFiles::Write(const std::string& path, std::string_view bytes) {
  CAIRN_ASSIGN_OR_RETURN(UniqueFd file, Create(path));
  CAIRN_RETURN_IF_ERROR(PwriteFull(file.get(), std::as_bytes(std::span(bytes)), 0, path));
  return file;
}

bool SetDirect(int fd, bool on) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

Status Preallocate(int fd, uint64_t bytes, const std::string& path) {
  if (fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0) return OkStatus();
  if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL || errno == EINTR) return OkStatus();
  return Status::FromErrno(errno, "reserve " + std::to_string(bytes) + " bytes for " + path);
}

}  // namespace cairn
