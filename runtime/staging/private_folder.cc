#include "runtime/staging/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace cairn {

Result<UniqueFd> OpenPrivateFolder(int parent, const std::string& name, const std::string& path,
                                   Presence presence) {
  if (presence != Presence::kMustBe && mkdirat(parent, name.c_str(), 0700) != 0 &&
      (errno != EEXIST || presence == Presence::kMustBeNew)) {
    return Status::FromErrno(errno, "mkdir " + path);
  }
  UniqueFd folder(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid())
    return Status::FromErrno(errno, "open " + path + " as a folder (links are not followed)");
  struct stat st;
  if (fstat(folder.get(), &st) != 0) return Status::FromErrno(errno, "stat " + path);
  if (st.st_uid != geteuid()) {
    return Status(Code::kPermission,
                  path + " belongs to uid " + std::to_string(st.st_uid) +
                      ": somebody else made it; have it removed, or set --checkpoint-local");
  }
  if ((st.st_mode & 077) != 0) {
    return Status(Code::kPermission, path + " is open to others: chmod 700 it, or remove it");
  }
  return folder;
}

void MarkInUse(int folder) {
  struct flock lock {};
  lock.l_type = F_RDLCK;
  static_cast<void>(fcntl(folder, F_OFD_SETLK, &lock));
}

bool InUse(int folder) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  return fcntl(folder, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace cairn
