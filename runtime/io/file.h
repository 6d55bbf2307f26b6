// Whole-file operations of the durable tier, and the one place that makes a small file durable.
//
// A path that begins with s3:// is an object's (stores.h), and everything that takes a path works on it alike, but for OpenFile and
// RenameDirectory: what was written is durable and there for everybody at once, so folders are neither made nor fsynced, and modes mean nothing.
//
// Every error names the call and the path and has the code that fits its errno (Status::FromErrno). EINTR and
// short transfers are handled here. A failed fsync means that the data are lost: it is reported and never
// tried again. All functions may be called from any thread; none may be called from the training path or a
// loop thread, since each can block as long as the file system likes.
#ifndef CAIRN_RUNTIME_IO_FILE_H_
#define CAIRN_RUNTIME_IO_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/fd.h"

namespace cairn {

// Permission bits of a durable file, for example 0640; nothing = what the umask and the folder's ACL give.
// Folders get the same bits, with search wherever there is read.
using FileMode = std::optional<uint32_t>;

// The path from the root on, without "." and ".." and without a slash at its end.
Result<std::string> AbsolutePath(const std::string& path);

// Whether `path` is `folder` or lies below it, links resolved as far as they exist; of objects by the names alone.
bool LiesIn(const std::string& path, const std::string& folder);

// open(2) with O_CLOEXEC.
Result<UniqueFd> OpenFile(const std::string& path, int flags, uint32_t mode = 0666);

Result<uint64_t> FileBytes(const std::string& path);

// The whole file. kNotFound when there is none; kDamage when it is longer than max_bytes or no regular file
// (what Cairn wrote is neither).
Result<std::string> ReadAll(const std::string& path, uint64_t max_bytes);

// Exactly out.size() bytes at `offset`; kDamage when the file ends before. `path` is for messages.
Status PreadFull(int fd, std::span<std::byte> out, uint64_t offset, std::string_view path);
Status PwriteFull(int fd, std::span<const std::byte> bytes, uint64_t offset, std::string_view path);

Status SyncFile(int fd, std::string_view path);
Status SyncDirectory(const std::string& path);

// mkdir -p; the parent of each folder that this call made is fsynced, so that the folder survives a crash of
// the node.
Status MakeDirectories(const std::string& path, FileMode mode = {});

// Makes the file `path` hold `bytes`, durably, in one atomic step; readers see the old content, or nothing,
// or the new content.
Status PublishFile(const std::string& path, std::string_view bytes, FileMode mode = {});

// The same, for a file that must not be there yet. kExists when somebody else made it first (whose content is
// complete).
Status CreateExclusive(const std::string& path, std::string_view bytes, FileMode mode = {});

// New content of the same length for a file that is there: not durable, not atomic, and possible on a full disk.
Status OverwriteFile(const std::string& path, std::string_view bytes);

// Asks the kernel to forget what it caches of a file, so that the next read goes to the store. Best effort.
void DropCached(const std::string& path);

// So begins the name of a file of PublishFile or CreateExclusive in the making, or what a crash left of one. Should somebody remove it too
// early, the call fails with kNotFound.
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

// Names in a folder, sorted, without "." and "..".
Result<std::vector<std::string>> ListDirectory(const std::string& path);

// Sizes of the files right in a folder, by name.
Result<std::map<std::string, uint64_t>> FileSizes(const std::string& folder);

// rename(2) of a folder, or of a file whose name is used once, by full path; after an error both names are looked at, since NFS may have done
// it (the reply was lost). kInternal for objects.
Status RenameDirectory(const std::string& from, const std::string& to);

// unlink(2); a file that is not there is fine.
Status RemoveFile(const std::string& path);

// Removes a folder and everything in it, without following links; of objects also what is unfinished. What is not there is fine.
Status RemoveTree(const std::string& path);

// Gives up what somebody has begun to write below a folder and does not show there: objects that are uploaded in parts. Nothing for files.
Status RemoveUnfinished(const std::string& folder);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_FILE_H_
