#include "runtime/interop/share_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/io/file.h"
#include "runtime/io/readable.h"

namespace cairn {
namespace {

Status CopyBytes(const std::string& from_path, int to, const std::string& to_path) {
  constexpr uint64_t kPart = 4 << 20;
  CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<Readable> from, Readable::Open(from_path));
  CAIRN_ASSIGN_OR_RETURN(const uint64_t bytes, from->Bytes());
  std::vector<std::byte> buffer(std::min(bytes, kPart));
  for (uint64_t at = 0; at < bytes; at += kPart) {
    const std::span<std::byte> part(buffer.data(), std::min(kPart, bytes - at));
    CAIRN_RETURN_IF_ERROR(from->Read(at, part));
    CAIRN_RETURN_IF_ERROR(PwriteFull(to, part, at, to_path));
  }
  return OkStatus();
}

bool Reflink(const std::string& from_path, int to) {
  const Result<UniqueFd> from = OpenFile(from_path, O_RDONLY);
  return from.ok() && ioctl(to, FICLONE, from->get()) == 0;
}

}  // namespace

Result<Sharing> ShareFile(const std::string& from_path, const std::string& to_path) {
  CAIRN_ASSIGN_OR_RETURN(UniqueFd to, OpenFile(to_path, O_WRONLY | O_CREAT | O_EXCL));
  Sharing sharing = Sharing::kReflink;
  if (!Reflink(from_path, to.get())) {
    CAIRN_RETURN_IF_ERROR(RemoveFile(to_path));
    // Of the file itself: a cache of models may name it by a symbolic link.
    if (linkat(AT_FDCWD, from_path.c_str(), AT_FDCWD, to_path.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      sharing = Sharing::kHardLink;
      CAIRN_ASSIGN_OR_RETURN(to, OpenFile(to_path, O_RDONLY));
    } else {
      // Another file system, a limit of links, a file of another user (protected_hardlinks), or an object.
      sharing = Sharing::kCopy;
      CAIRN_ASSIGN_OR_RETURN(to, OpenFile(to_path, O_WRONLY | O_CREAT | O_EXCL));
      CAIRN_RETURN_IF_ERROR(CopyBytes(from_path, to.get(), to_path));
    }
  }
  CAIRN_RETURN_IF_ERROR(SyncFile(to.get(), to_path));
  CAIRN_RETURN_IF_ERROR(std::move(to).Close(to_path));
  return sharing;
}

std::string_view SharingName(Sharing sharing) {
  switch (sharing) {
    case Sharing::kReflink:
      return "reflink";
    case Sharing::kHardLink:
      return "hard link";
    case Sharing::kCopy:
      return "copy";
  }
  return "";
}

}  // namespace cairn
