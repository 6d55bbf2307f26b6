#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "runtime/command/doctor.h"
#include "runtime/io/file.h"
#include "runtime/io/random.h"
#include "runtime/io/stores.h"
#include "runtime/staging/ipc_removal.h"
#include "runtime/staging/memory_room.h"
#include "runtime/staging/mount_table.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLittleSpace = uint64_t{1} << 30;
constexpr uint64_t kFewInodes = 1000;
constexpr uint64_t kTinyShm = uint64_t{64} << 20;  // what container run times give by default
constexpr uint64_t kLittleMemory = uint64_t{256} << 20;

// What a commit relies on, in a folder of our own that is removed in the end (docs/design/formats.md).
Status TryCommitCalls(const std::string& folder) {
  const std::string first = folder + "/first", second = folder + "/second", moved = folder + "/moved";
  {
    CAIRN_ASSIGN_OR_RETURN(UniqueFd file, OpenFile(first, O_WRONLY | O_CREAT | O_EXCL, 0600));
    CAIRN_RETURN_IF_ERROR(PwriteFull(file.get(), std::as_bytes(std::span("cairn", 5)), 0, first));
    CAIRN_RETURN_IF_ERROR(SyncFile(file.get(), first));
    CAIRN_RETURN_IF_ERROR(std::move(file).Close(first));
  }
  const Result<UniqueFd> again = OpenFile(first, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (again.ok()) return {Code::kIo, "exclusive create made " + first + " twice"};
  if (again.status().code() != Code::kExists) return again.status();
  if (link(first.c_str(), second.c_str()) != 0) return Status::FromErrno(errno, "hard link " + second);
  if (rename(second.c_str(), moved.c_str()) != 0) return Status::FromErrno(errno, "rename " + second);
  return SyncDirectory(folder);
}

Check CheckSpace(const std::string& dir) {
  struct statvfs fs_info;
  if (statvfs(dir.c_str(), &fs_info) != 0) {
    return {"space", Finding::kWarning,
            Status::FromErrno(errno, "ask for the free space of " + dir).message(), ""};
  }
  const uint64_t free_bytes = static_cast<uint64_t>(fs_info.f_bavail) * fs_info.f_frsize;
  Check check{"space", Finding::kGood, FormatBytes(free_bytes) + " free", ""};
  const bool counts_inodes = fs_info.f_files != 0;
  if (counts_inodes) check.text += ", " + std::to_string(fs_info.f_favail) + " files may still be made";
  if (free_bytes < kLittleSpace || (counts_inodes && fs_info.f_favail < kFewInodes)) {
    check.finding = Finding::kWarning;
    check.remedy =
        "a save needs the size of the program's state and a few files a rank, besides the older checkpoints "
        "that are kept; quotas come on top";
  }
  return check;
}

Check CheckSharedMemory(const std::string& root) {
  const std::string shm = root + "/dev/shm";
  struct statfs fs_info;
  if (statfs(shm.c_str(), &fs_info) != 0) {
    return {"shared memory", Finding::kWarning, Status::FromErrno(errno, "look at " + shm).message(),
            "saves are staged in each process's own memory"};
  }
  const uint64_t total = static_cast<uint64_t>(fs_info.f_blocks) * static_cast<uint64_t>(fs_info.f_bsize);
  Check check{"shared memory", Finding::kGood,
              shm + ", " + (total == 0 ? "without a limit" : FormatBytes(total)), ""};
  if (fs_info.f_type != TMPFS_MAGIC && fs_info.f_type != RAMFS_MAGIC) {
    check.finding = Finding::kWarning;
    check.text += ", is no memory file system";
    check.remedy = "staging there is as slow as its disk: use --checkpoint-local=none";
    return check;
  }
  if (IsPrivateMount("/dev/shm", root)) {
    check.finding = Finding::kWarning;
    check.text += ", private to this job or container: images there vanish with it";
    check.remedy =
        "in a container mount the node's /dev/shm, or a save that is not durable yet is lost with its rank";
  }
  if (total != 0 && total <= kTinyShm) {
    check.finding = Finding::kWarning;
    check.text += " (a container's default)";
    check.remedy = "enlarge it (--shm-size), or use --checkpoint-local=none";
  }
  return check;
}

Check CheckRemoveIpc(const std::string& root) {
  switch (FindIpcRemoval(root, kOrdinaryUser, "")) {
    case IpcRemoval::kNoLogind:
      return {"RemoveIPC", Finding::kGood, "no logind runs here to empty shared memory", ""};
    case IpcRemoval::kOff:
      return {"RemoveIPC", Finding::kGood, "RemoveIPC=no: logind leaves shared memory alone", ""};
    default:
      break;
  }
  return {"RemoveIPC", Finding::kWarning,
          "logind's RemoveIPC is yes: images vanish when their user logs out of this node",
          "set RemoveIPC=no in /etc/systemd/logind.conf on the compute nodes (Slurm's documentation asks for "
          "it, too)"};
}

Status TryObjectCalls(const std::string& path) {
  CAIRN_RETURN_IF_ERROR(CreateExclusive(path, "cairn"));
  const Status again = CreateExclusive(path, "other");
  const Result<std::string> found = ReadAll(path, 5);
  CAIRN_RETURN_IF_ERROR(RemoveFile(path));
  CAIRN_RETURN_IF_ERROR(found.status());
  if (again.code() == Code::kExists && *found == "cairn") return OkStatus();
  return {Code::kIo, "an object was made anew though it was there"};
}

Check CheckBucket(const std::string& dir) {
  const Status tried = TryObjectCalls(dir + "/.cairn-doctor-" + RandomHex(8));
  if (tried.ok())
    return {"directory", Finding::kGood, dir + ": put, put only what is new, read and remove work", ""};
  return {"directory", Finding::kProblem, dir + " cannot hold checkpoints: " + tried.message(),
          "see docs/s3.md for endpoint, region and credentials"};
}

}  // namespace

std::vector<Check> CheckDirectory(const std::string& dir) {
  if (IsObjectPath(dir)) return {CheckBucket(dir)};
  std::error_code error;
  fs::path path = fs::absolute(dir, error).lexically_normal();
  if (!path.has_filename() && path.has_parent_path()) path = path.parent_path();
  const std::string wanted = path.string();
  while (!fs::exists(path, error) && path != path.parent_path()) path = path.parent_path();
  const std::string folder = path.string() + "/.cairn-doctor-" + RandomHex(8);
  if (mkdir(folder.c_str(), 0700) != 0) {
    return {{"directory", Finding::kProblem,
             Status::FromErrno(errno, "make a folder in " + path.string()).message(),
             "choose another --checkpoint-dir, or have its permissions corrected"}};
  }
  const Status tried = TryCommitCalls(folder);
  (void)RemoveTree(folder);
  if (!tried.ok()) {
    return {
        {"directory", Finding::kProblem, path.string() + " cannot hold checkpoints: " + tried.message(),
         "choose a --checkpoint-dir on a file system with exclusive create, hard links, rename and fsync"}};
  }
  const std::string made = path.string() == wanted ? "" : " (" + wanted + " would be made in it)";
  return {{"directory", Finding::kGood,
           path.string() + made + ": exclusive create, hard link, rename and fsync work", ""},
          CheckSpace(path.string())};
}

std::vector<Check> CheckMemory(const std::string& root) {
  const MemoryRoom room = ReadMemoryRoom(1);
  Check memory{"memory", Finding::kGood, FormatBytes(room.bytes) + " left, bounded by " + room.bound_by, ""};
  if (room.bytes < kLittleMemory) {
    memory.finding = Finding::kWarning;
    memory.remedy = "a save stages a copy of the state in memory: ask for more (--mem)";
  }
  return {CheckSharedMemory(root), CheckRemoveIpc(root), memory};
}

}  // namespace cairn
