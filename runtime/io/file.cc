#include "runtime/io/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "runtime/io/object_files.h"
#include "runtime/io/random.h"
#include "runtime/io/stores.h"

// How a small file becomes durable (WriteTemporary, then PublishFile or CreateExclusive):
//
//   1. write everything into a new file with a random name in the same folder;
//   2. fsync and close it: its content is on the disk before its name can be seen;
//   3. give it its name in one step: rename (the old content is replaced) or link (fails when the name is taken);
//   4. fsync the folder: the name is on the disk.
//
// An error of step 3 is not the last word: NFS repeats a request whose reply was lost, and the repetition fails on what the first one did.
// So the result is looked at: after rename the content, after link the inode (the content of two contenders may be equal).
// An error of step 2 is final: the kernel may have dropped the pages, and a second fsync would claim success.

namespace cairn {
namespace {

std::string Call(std::string_view call, std::string_view path) {
  return std::string(call) + " " + std::string(path);
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

struct Temporary {
  std::string path;
  struct stat stat {};
};

// Steps 1 and 2. Leaves nothing behind on failure.
Result<Temporary> WriteTemporary(const std::string& path, std::string_view bytes, FileMode mode) {
  const size_t slash = path.rfind('/') + 1;  // 0 when there is none
  Temporary temporary;
  temporary.path =
      path.substr(0, slash) + std::string(kTemporaryPrefix) + path.substr(slash) + "-" + RandomHex(8);
  const auto write = [&]() -> Status {
    CAIRN_ASSIGN_OR_RETURN(UniqueFd fd,
                           OpenFile(temporary.path, O_WRONLY | O_CREAT | O_EXCL, mode ? 0600 : 0666));
    if (mode && fchmod(fd.get(), *mode) != 0) return Status::FromErrno(errno, Call("fchmod", temporary.path));
    CAIRN_RETURN_IF_ERROR(PwriteFull(fd.get(), std::as_bytes(std::span(bytes)), 0, temporary.path));
    CAIRN_RETURN_IF_ERROR(SyncFile(fd.get(), temporary.path));
    if (fstat(fd.get(), &temporary.stat) != 0) return Status::FromErrno(errno, Call("fstat", temporary.path));
    return std::move(fd).Close(temporary.path);
  };
  if (Status status = write(); !status.ok()) {
    unlink(temporary.path.c_str());
    return status;
  }
  return temporary;
}

}  // namespace

Result<std::string> AbsolutePath(const std::string& path) {
  namespace fs = std::filesystem;
  std::string normal;
  if (IsObjectPath(path)) {  // its two slashes stay two
    normal =
        std::string(kObjectScheme) + fs::path(path.substr(kObjectScheme.size())).lexically_normal().string();
  } else {
    std::error_code error;
    normal = fs::absolute(path, error).lexically_normal().string();
    if (error) return Status::FromErrno(error.value(), "find " + path);
  }
  while (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

bool LiesIn(const std::string& path, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto resolve = [&error](const std::string& text) {
    fs::path out = IsObjectPath(text) ? fs::path(text).lexically_normal() : fs::weakly_canonical(text, error);
    return out.has_filename() ? out : out.parent_path();  // without a slash at its end
  };
  const fs::path inner = resolve(path);
  if (error) return false;
  const fs::path outer = resolve(folder);
  return !error && std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

Result<UniqueFd> OpenFile(const std::string& path, int flags, uint32_t mode) {
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return Status::FromErrno(errno, Call("open", path));
  return UniqueFd(fd);
}

Result<uint64_t> FileBytes(const std::string& path) {
  if (IsObjectPath(path)) return objects::FileBytes(path);
  struct stat st;
  if (stat(path.c_str(), &st) != 0) return Status::FromErrno(errno, Call("stat", path));
  return static_cast<uint64_t>(st.st_size);
}

Result<std::string> ReadAll(const std::string& path, uint64_t max_bytes) {
  if (IsObjectPath(path)) return objects::ReadAll(path, max_bytes);
  // O_NONBLOCK: a FIFO under this name must not hang the reader.
  CAIRN_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDONLY | O_NONBLOCK));
  struct stat st;
  if (fstat(fd.get(), &st) != 0) return Status::FromErrno(errno, Call("fstat", path));
  if (!S_ISREG(st.st_mode)) return Status(Code::kDamage, path + " is no regular file");
  const auto too_long = [&] {
    return Status(Code::kDamage,
                  path + " is longer than the " + std::to_string(max_bytes) + " bytes that it can have");
  };
  if (static_cast<uint64_t>(st.st_size) > max_bytes) return too_long();

  std::string bytes(static_cast<size_t>(st.st_size), '\0');
  size_t have = 0;
  for (;;) {  // until the end, not until st_size: NFS may show an old size
    if (have == bytes.size()) bytes.resize(bytes.size() + 4096);
    const ssize_t n = read(fd.get(), bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status::FromErrno(errno, Call("read", path));
    if (n == 0) break;
    have += static_cast<size_t>(n);
    if (have > max_bytes) return too_long();
  }
  bytes.resize(have);
  return bytes;
}

Status PreadFull(int fd, std::span<std::byte> out, uint64_t offset, std::string_view path) {
  size_t have = 0;
  while (have < out.size()) {
    const ssize_t n = pread(fd, out.data() + have, out.size() - have, static_cast<off_t>(offset + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return Status::FromErrno(errno, Call("pread", path) + " at " + std::to_string(offset + have));
    }
    if (n == 0) {
      return {Code::kDamage, std::string(path) + " ends at byte " + std::to_string(offset + have) +
                                 ", before byte " + std::to_string(offset + out.size()) +
                                 " that should be there: it was truncated"};
    }
    have += static_cast<size_t>(n);
  }
  return OkStatus();
}

Status PwriteFull(int fd, std::span<const std::byte> bytes, uint64_t offset, std::string_view path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return Status::FromErrno(errno, Call("pwrite", path) + " at " + std::to_string(offset + done));
    }
    done += static_cast<size_t>(n);
  }
  return OkStatus();
}

Status SyncFile(int fd, std::string_view path) {
  if (fsync(fd) != 0) return Status::FromErrno(errno, Call("fsync", path));
  return OkStatus();
}

Status SyncDirectory(const std::string& path) {
  if (IsObjectPath(path)) return OkStatus();
  CAIRN_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_RDONLY | O_DIRECTORY));
  // EINVAL: a file system whose folders cannot be fsynced; it has no stronger promise to give.
  if (fsync(fd.get()) != 0 && errno != EINVAL) return Status::FromErrno(errno, Call("fsync", path));
  return OkStatus();
}

Status MakeDirectories(const std::string& path, FileMode mode) {
  if (IsObjectPath(path)) return OkStatus();
  struct stat st;
  if (stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) return OkStatus();
    return Status::FromErrno(ENOTDIR, Call("mkdir", path));
  }
  const std::string parent = ParentOf(path);
  if (parent != path) CAIRN_RETURN_IF_ERROR(MakeDirectories(parent, mode));
  if (mkdir(path.c_str(), 0777) != 0) {
    if (errno == EEXIST) return OkStatus();  // somebody else was faster, and syncs the parent
    return Status::FromErrno(errno, Call("mkdir", path));
  }
  if (mode) {
    const uint32_t search = (*mode & 0444) >> 2;
    if (chmod(path.c_str(), *mode | search) != 0) return Status::FromErrno(errno, Call("chmod", path));
  }
  return SyncDirectory(parent);
}

Status PublishFile(const std::string& path, std::string_view bytes, FileMode mode) {
  if (IsObjectPath(path)) return objects::PublishFile(path, bytes);
  CAIRN_ASSIGN_OR_RETURN(const Temporary temporary, WriteTemporary(path, bytes, mode));
  if (rename(temporary.path.c_str(), path.c_str()) != 0) {
    const Status failure = Status::FromErrno(errno, Call("rename", temporary.path) + " to " + path);
    const Result<std::string> content = ReadAll(path, bytes.size());
    if (!content.ok() || *content != bytes) {
      unlink(temporary.path.c_str());
      return failure;
    }
  }
  return SyncDirectory(ParentOf(path));
}

Status CreateExclusive(const std::string& path, std::string_view bytes, FileMode mode) {
  if (IsObjectPath(path)) return objects::CreateExclusive(path, bytes);
  CAIRN_ASSIGN_OR_RETURN(const Temporary temporary, WriteTemporary(path, bytes, mode));
  Status status;
  if (link(temporary.path.c_str(), path.c_str()) != 0) {
    int error = errno;
    if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS) {  // a file system without hard links
      error = renameat2(AT_FDCWD, temporary.path.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0
                  ? 0
                  : errno;
    }
    struct stat st;
    const bool ours = stat(path.c_str(), &st) == 0 && st.st_dev == temporary.stat.st_dev &&
                      st.st_ino == temporary.stat.st_ino;
    if (error != 0 && !ours) status = Status::FromErrno(error, Call("create", path));
  }
  unlink(temporary.path.c_str());
  CAIRN_RETURN_IF_ERROR(status);
  return SyncDirectory(ParentOf(path));
}

Status OverwriteFile(const std::string& path, std::string_view bytes) {
  if (IsObjectPath(path)) return objects::PublishFile(path, bytes);
  CAIRN_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path, O_WRONLY));
  CAIRN_RETURN_IF_ERROR(PwriteFull(fd.get(), std::as_bytes(std::span(bytes)), 0, path));
  return std::move(fd).Close(path);
}

void DropCached(const std::string& path) {
  if (IsObjectPath(path)) return;
  const Result<UniqueFd> fd = OpenFile(path, O_RDONLY | O_NONBLOCK);
  if (fd.ok()) posix_fadvise(fd->get(), 0, 0, POSIX_FADV_DONTNEED);
}

Result<std::vector<std::string>> ListDirectory(const std::string& path) {
  if (IsObjectPath(path)) return objects::ListDirectory(path);
  DIR* stream = opendir(path.c_str());
  if (stream == nullptr) return Status::FromErrno(errno, Call("opendir", path));
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int error = errno;
  closedir(stream);
  if (error != 0) return Status::FromErrno(error, Call("readdir", path));
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::map<std::string, uint64_t>> FileSizes(const std::string& folder) {
  if (IsObjectPath(folder)) return objects::FileSizes(folder);
  CAIRN_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  std::map<std::string, uint64_t> sizes;
  for (const std::string& name : names) {
    const Result<uint64_t> bytes = FileBytes(folder + "/" + name);
    if (!bytes.ok() && bytes.status().code() == Code::kNotFound) continue;  // removed meanwhile
    CAIRN_ASSIGN_OR_RETURN(sizes[name], bytes);
  }
  return sizes;
}

Status RenameDirectory(const std::string& from, const std::string& to) {
  if (IsObjectPath(from)) return {Code::kInternal, "rename " + from + ": objects keep their names"};
  if (rename(from.c_str(), to.c_str()) == 0) return OkStatus();
  const int error = errno;
  struct stat st;
  if (stat(from.c_str(), &st) != 0 && errno == ENOENT && stat(to.c_str(), &st) == 0) return OkStatus();
  return Status::FromErrno(error, Call("rename", from) + " to " + to);
}

Status RemoveFile(const std::string& path) {
  if (IsObjectPath(path)) return objects::RemoveFile(path);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return Status::FromErrno(errno, Call("unlink", path));
  return OkStatus();
}

Status RemoveTree(const std::string& path) {
  if (IsObjectPath(path)) return objects::RemoveTree(path);
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return Status::FromErrno(error.value(), Call("remove", path));
  return OkStatus();
}

Status RemoveUnfinished(const std::string& folder) {
  return IsObjectPath(folder) ? objects::RemoveUnfinished(folder) : OkStatus();
}

}  // namespace cairn
