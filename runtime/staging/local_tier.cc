#include "runtime/staging/local_tier.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/io/file.h"
#include "runtime/io/fork_guard.h"
#include "runtime/io/random.h"
#include "runtime/staging/memory_room.h"
#include "runtime/staging/mount_table.h"

namespace cairn {
namespace {

constexpr uint64_t kTinyBytes = 64 << 20;  // what container run times give /dev/shm by default

// The folder `name` in `parent`, made if it is not there, private to us. `path` is for messages.
Result<UniqueFd> OpenPrivateFolder(int parent, const std::string& name, const std::string& path,
                                   bool must_be_new) {
  if (mkdirat(parent, name.c_str(), 0700) != 0 && (errno != EEXIST || must_be_new)) {
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

// A lock on the folder itself, which goes with its owner. Others ask for it and never take it. Where the kernel has no such locks,
// everything is in use.
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

// Removes the folders of ranks of this job on this node that are dead. An empty one may be about to be marked.
void RemoveDead(int parent, const std::string& parent_path, const std::string& prefix) {
  const auto names = ListDirectory(parent_path);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(prefix)) continue;
    const UniqueFd folder(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.valid() || InUse(folder.get())) continue;
    const std::string path = parent_path + "/" + name;
    const auto content = ListDirectory(path);
    if (content.ok() && !content->empty()) static_cast<void>(RemoveTree(path));
  }
}

}  // namespace

Result<LocalTier> LocalTier::Open(const LocalTierOptions& options) {
  LocalTier anonymous;
  const auto say = [&](const std::string& text) { anonymous.notes_.push_back(text); };
  if (options.setting == "none") {
    say("local tier: none; a save that is not durable yet is lost with its process");
    return anonymous;
  }
  const bool automatic = options.setting == "auto";
  if (automatic && !options.epilog_cleans) {
    say("local tier: none, since no epilog of this cluster would clean " + options.shm +
        "; a save that is not durable yet is lost with its process");
    return anonymous;
  }
  Result<LocalTier> tier = OpenFolder(options, automatic ? options.shm : options.setting);
  if (tier.ok() || !automatic) return tier;
  say("local tier: none, since " + options.shm + " cannot be used: " + tier.status().message());
  return anonymous;
}

Result<LocalTier> LocalTier::OpenFolder(const LocalTierOptions& options, const std::string& base) {
  for (const std::string& part : {options.job, options.node}) {
    if (part.empty() || part.front() == '.' || part.find('/') != std::string::npos) {
      return Status(Code::kInvalid, "\"" + part + "\" cannot be part of a file name");
    }
  }
  CAIRN_ASSIGN_OR_RETURN(const UniqueFd base_folder, OpenFile(base, O_RDONLY | O_DIRECTORY));
  const std::string parent_name = "cairn-" + std::to_string(geteuid());
  const std::string parent_path = base + "/" + parent_name;
  CAIRN_ASSIGN_OR_RETURN(const UniqueFd parent,
                         OpenPrivateFolder(base_folder.get(), parent_name, parent_path, false));
  const std::string prefix = options.job + "." + options.node + ".";
  RemoveDead(parent.get(), parent_path, prefix);
  const std::string name = prefix + RandomHex(8);
  LocalTier tier;
  CAIRN_ASSIGN_OR_RETURN(tier.folder_, OpenPrivateFolder(parent.get(), name, parent_path + "/" + name, true));
  tier.path_ = parent_path + "/" + name;
  tier.owner_pid_ = getpid();
  ForkGuard::Own(tier.folder_.get());  // a child that outlives its rank must not keep the lock
  MarkInUse(tier.folder_.get());

  tier.notes_.push_back("local tier: " + tier.path_);
  struct statfs fs;
  if (fstatfs(tier.folder_.get(), &fs) == 0) {
    const uint64_t total = static_cast<uint64_t>(fs.f_blocks) * static_cast<uint64_t>(fs.f_bsize);
    if (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC) {
      tier.notes_.push_back(
          base + " is no memory file system: a save stalls the program as long as its disk is slow");
    } else if (total != 0 && total <= kTinyBytes) {
      tier.notes_.push_back(
          base + " has only " + FormatBytes(total) +
          " (a container's default): enlarge it (--shm-size), or use --checkpoint-local=none");
    }
  }
  if (IsPrivateMount(base)) {
    tier.notes_.push_back(base + " is private to this job: images there vanish with the job");
  } else if (options.epilog_cleans && base != options.shm) {
    tier.notes_.push_back(
        "the epilog cleans " + options.shm +
        " and the directory that the site names (local= in plugstack.conf): unless that is " + base +
        ", remove " + parent_path + " by hand after a crash of this job");
  } else if (!options.epilog_cleans) {
    tier.notes_.push_back("nobody cleans " + base + " after a crash of this job: remove " + parent_path +
                          " by hand then");
  }
  return tier;
}

LocalTier::~LocalTier() {
  if (path_.empty()) return;
  // A forked child that ends must not take the images of its parent along; its descriptor was closed at the fork.
  if (owner_pid_ != getpid()) {
    folder_.Release();
    return;
  }
  static_cast<void>(RemoveTree(path_));
  ForkGuard::Disown(folder_.get());
}

LocalTier::LocalTier(LocalTier&& other) noexcept { *this = std::move(other); }

LocalTier& LocalTier::operator=(LocalTier&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(folder_, other.folder_);
  std::swap(owner_pid_, other.owner_pid_);
  std::swap(notes_, other.notes_);
  return *this;
}

uint64_t LocalTier::FreeBytes() const {
  struct statvfs fs;
  if (anonymous() || fstatvfs(folder_.get(), &fs) != 0 || fs.f_blocks == 0)
    return UINT64_MAX;  // 0 = no limit
  return static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize;
}

Result<Mapping> LocalTier::Map(std::string_view name, uint64_t bytes, const MayTakeFunction& may_take) const {
  const std::string text(name);
  if (anonymous()) return Mapping::Make(-1, bytes, text, may_take);
  const UniqueFd file(
      openat(folder_.get(), text.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return Status::FromErrno(errno, "create " + path_ + "/" + text);
  Result<Mapping> mapping = Mapping::Make(file.get(), bytes, path_ + "/" + text, may_take);
  if (!mapping.ok()) Remove(name);
  return mapping;
}

void LocalTier::Remove(std::string_view name) const {
  if (!anonymous()) unlinkat(folder_.get(), std::string(name).c_str(), 0);
}

}  // namespace cairn
