#include "runtime/session/directory_room.h"

#include <fcntl.h>
#include <sys/quota.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/io/file.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

std::optional<uint64_t> Less(std::optional<uint64_t> a, std::optional<uint64_t> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// What is left below a limit; 0 is none.
std::optional<uint64_t> Left(uint64_t hard, uint64_t soft, uint64_t used) {
  const uint64_t limit = hard != 0 ? hard : soft;
  if (limit == 0) return std::nullopt;
  return limit > used ? limit - used : 0;
}

// From Linux 5.14 on; before, and where the file system keeps no quota here, there is nothing to compare.
void ReadQuota(int fd, int type, uint32_t id, DirectoryRoom* room) {
  dqblk quota{};
  if (syscall(SYS_quotactl_fd, fd, QCMD(Q_GETQUOTA, type), id, &quota) != 0) return;
  constexpr uint64_t kUnit = 1024;  // of the limits in bytes
  room->quota_bytes = Less(room->quota_bytes, Left(quota.dqb_bhardlimit * kUnit, quota.dqb_bsoftlimit * kUnit,
                                                   quota.dqb_curspace));
  room->quota_files =
      Less(room->quota_files, Left(quota.dqb_ihardlimit, quota.dqb_isoftlimit, quota.dqb_curinodes));
}

}  // namespace

DirectoryRoom ReadDirectoryRoom(const std::string& path) {
  DirectoryRoom room;
  const auto fd = OpenFile(path, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) return room;
  struct statvfs fs {};
  if (fstatvfs(fd->get(), &fs) == 0) {
    room.bytes = uint64_t{fs.f_bavail} * fs.f_frsize;
    if (fs.f_files > 0) room.files = fs.f_favail;  // file systems that make inodes as they go say 0
  }
  ReadQuota(fd->get(), USRQUOTA, geteuid(), &room);
  ReadQuota(fd->get(), GRPQUOTA, getegid(), &room);
  return room;
}

std::string WhatIsMissing(const DirectoryRoom& room, const SaveNeeds& needs) {
  struct Limit {
    std::optional<uint64_t> left;
    uint64_t need;
    bool files;
    const char* whose;
  };
  const Limit limits[] = {{room.quota_files, needs.files, true, "your quota"},
                          {room.files, needs.files, true, "the file system"},
                          {room.quota_bytes, needs.bytes, false, "your quota"},
                          {room.bytes, needs.bytes, false, "the file system"}};
  const Limit* tightest = nullptr;
  uint64_t fitting = needs.saves;
  for (const Limit& limit : limits) {
    if (!limit.left || *limit.left / std::max<uint64_t>(limit.need, 1) >= fitting) continue;
    fitting = *limit.left / std::max<uint64_t>(limit.need, 1);
    tightest = &limit;
  }
  if (tightest == nullptr) return "";
  const auto amount = [&](uint64_t n) {
    return tightest->files ? std::to_string(n) + " files" : FormatBytes(n);
  };
  return std::string(tightest->whose) + " has room for " + amount(*tightest->left) +
         ", and each save needs " + amount(tightest->need) + ": " +
         (fitting == 0
              ? "the next one will fail"
              : "number " + std::to_string(fitting + 1) + " of the next " + std::to_string(needs.saves) +
                    " will fail, before --checkpoint-keep lets anything be pruned") +
         ". Make room, have the limit raised, or give another --checkpoint-dir";
}

}  // namespace cairn
