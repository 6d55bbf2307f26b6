// LocalTier: where a rank's images live until they are durable: a private folder of files on a memory file
// system, or anonymous memory.
//
// A folder outlives the process, so its images survive a crash; somebody must then remove it. It is used only
// where the plugin's epilog does (SLURM_CAIRN_EPILOG=1) or where the user named a directory. Else, and with
// "none", images live in anonymous memory and die with the process. Each rank has a folder of its own,
// <base>/cairn-<uid>/<job>.<node>.<random>/ (docs/design/bootstrap.md section 3).
//
// The folder's parent is made 0700 and must belong to us; no link is followed; files are 0600 and created
// exclusively. When the tier is destroyed in the process that opened it, the folder goes with it, unless Keep was called. What a rank
// that was killed left behind, and what was kept, is for the next life to look at (leftovers.h), and goes at the latest by the epilog.
//
// Threads: Open, Map and the destructor from one thread at a time.
#ifndef CAIRN_RUNTIME_STAGING_LOCAL_TIER_H_
#define CAIRN_RUNTIME_STAGING_LOCAL_TIER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"
#include "runtime/io/fd.h"
#include "runtime/staging/mapping.h"

namespace cairn {

struct LocalTierOptions {
  std::string setting = "auto";  // Settings::local: auto, none, or an absolute directory
  bool epilog_cleans = false;    // SLURM_CAIRN_EPILOG=1
  std::string shm = "/dev/shm";  // what "auto" uses
  std::string job = "0";         // SLURM_JOB_ID
  std::string node = "local";    // SLURM_CAIRN_NODE
};

// Where folders are made: "" = nowhere, images live in anonymous memory.
std::string LocalBase(const LocalTierOptions& options);
std::string UserFolderName();  // in that: cairn-<uid>
// How the names in there begin that belong to this job and node. kInvalid when they cannot be part of a name.
Result<std::string> FolderPrefix(const LocalTierOptions& options);

class LocalTier {
 public:
  // A directory that the user named and that cannot be used is an error (kPermission, kNotFound, kInvalid …).
  // With "auto" an unusable /dev/shm is no error: the tier is anonymous and `notes` say why.
  static Result<LocalTier> Open(const LocalTierOptions& options);

  ~LocalTier();
  LocalTier(LocalTier&&) noexcept;
  LocalTier& operator=(LocalTier&&) noexcept;

  bool anonymous() const { return path_.empty(); }
  const std::string& path() const { return path_; }  // of this rank's folder; "" when anonymous
  // Sentences for the log: what outlives what, and what was found unfit (a tiny, private or sticky-less
  // /dev/shm, a disk).
  const std::vector<std::string>& notes() const { return notes_; }

  // Bytes that the tier's file system still takes; UINT64_MAX when anonymous.
  uint64_t FreeBytes() const;

  // A new mapping, of the new file `name` in the folder unless anonymous. Errors as Mapping::Make; the file
  // is removed then.
  Result<Mapping> Map(std::string_view name, uint64_t bytes, const MayTakeFunction& may_take) const;

  // A new file in the folder; nothing to do when anonymous. A failure may leave a part of it.
  Status Write(std::string_view name, std::string_view bytes) const;

  // The folder outlives this object: it holds what is nowhere else.
  void Keep() { keep_ = true; }

  // Removes such a file; its mapping lives on until it is unmapped. Nothing to do when anonymous.
  void Remove(std::string_view name) const;

 private:
  LocalTier() = default;
  static Result<LocalTier> OpenFolder(const LocalTierOptions& options, const std::string& base);

  std::string path_;
  UniqueFd folder_;
  int owner_pid_ = 0;
  bool keep_ = false;
  std::vector<std::string> notes_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_LOCAL_TIER_H_
