#include "runtime/staging/local_tier.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

#include "runtime/io/file.h"
#include "runtime/io/random.h"
#include "runtime/staging/memory_room.h"
#include "runtime/staging/mount_table.h"
#include "runtime/staging/private_folder.h"

namespace cairn {
namespace {

constexpr uint64_t kTinyBytes = 64 << 20;  // what container run times give /dev/shm by default

}  // namespace

std::string LocalBase(const LocalTierOptions& options) {
  if (options.setting == "none") return "";
  if (options.setting != "auto") return options.setting;
  return options.epilog_cleans ? options.shm : "";
}

std::string UserFolderName() { return "cairn-" + std::to_string(geteuid()); }

Result<std::string> FolderPrefix(const LocalTierOptions& options) {
  for (const std::string& part : {options.job, options.node}) {
    if (part.empty() || part.front() == '.' || part.find('/') != std::string::npos) {
      return Status(Code::kInvalid, "\"" + part + "\" cannot be part of a file name");
    }
  }
  return options.job + "." + options.node + ".";
}

Result<LocalTier> LocalTier::Open(const LocalTierOptions& options) {
  LocalTier anonymous;
  const auto say = [&](const std::string& text) { anonymous.notes_.push_back(text); };
  if (options.setting == "none") {
    say("local tier: none; a save that is not durable yet is lost with its process");
    return anonymous;
  }
  const std::string base = LocalBase(options);
  if (base.empty()) {
    say("local tier: none, since no epilog of this cluster would clean " + options.shm +
        "; a save that is not durable yet is lost with its process");
    return anonymous;
  }
  Result<LocalTier> tier = OpenFolder(options, base);
  if (tier.ok() || options.setting != "auto") return tier;
  say("local tier: none, since " + options.shm + " cannot be used: " + tier.status().message());
  return anonymous;
}

Result<LocalTier> LocalTier::OpenFolder(const LocalTierOptions& options, const std::string& base) {
  CAIRN_ASSIGN_OR_RETURN(const std::string prefix, FolderPrefix(options));
  CAIRN_ASSIGN_OR_RETURN(const UniqueFd base_folder, OpenFile(base, O_RDONLY | O_DIRECTORY));
  const std::string parent_path = base + "/" + UserFolderName();
  CAIRN_ASSIGN_OR_RETURN(const UniqueFd parent, OpenPrivateFolder(base_folder.get(), UserFolderName(),
                                                                  parent_path, Presence::kMayBe));
  const std::string name = prefix + RandomHex(8);
  LocalTier tier;
  CAIRN_ASSIGN_OR_RETURN(
      tier.folder_, OpenPrivateFolder(parent.get(), name, parent_path + "/" + name, Presence::kMustBeNew));
  tier.path_ = parent_path + "/" + name;
  tier.owner_pid_ = getpid();
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
  // A forked child that ends must not take the images of its parent along.
  if (!path_.empty() && !keep_ && owner_pid_ == getpid()) static_cast<void>(RemoveTree(path_));
}

LocalTier::LocalTier(LocalTier&& other) noexcept { *this = std::move(other); }

LocalTier& LocalTier::operator=(LocalTier&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(folder_, other.folder_);
  std::swap(owner_pid_, other.owner_pid_);
  std::swap(keep_, other.keep_);
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

Status LocalTier::Write(std::string_view name, std::string_view bytes) const {
  if (anonymous()) return OkStatus();
  const std::string path = path_ + "/" + std::string(name);
  const UniqueFd file(openat(folder_.get(), std::string(name).c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return Status::FromErrno(errno, "create " + path);
  return PwriteFull(file.get(), std::as_bytes(std::span(bytes)), 0, path);
}

void LocalTier::Remove(std::string_view name) const {
  if (!anonymous()) unlinkat(folder_.get(), std::string(name).c_str(), 0);
}

}  // namespace cairn
