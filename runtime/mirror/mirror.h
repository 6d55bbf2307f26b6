// Mirror: a second place for checkpoints of a run, in a directory or in a bucket (`cairn push`).
//
// A mirror is a complete run: the same identity (RUN), some of the same checkpoints, and the same line through them, so that every command works on it and
// a job goes on from it with --checkpoint-dir or --checkpoint-from. Once a life has claimed it for that, nothing is copied into it any more. The
// protocol is in mirror.cc.
//
// Blocking I/O on both stores; one thread, besides one of its own that beats while it copies.
#ifndef CAIRN_RUNTIME_MIRROR_MIRROR_H_
#define CAIRN_RUNTIME_MIRROR_MIRROR_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/epoch.h"
#include "runtime/catalog/retention.h"
#include "runtime/catalog/run_directory.h"
#include "runtime/settings.h"

namespace cairn {

class Life;

// A checkpoint that is in the mirror.
struct Copied {
  std::string from, name;  // in the run, and in the mirror
  int64_t step = 0;
  uint64_t bytes = 0;
  std::chrono::nanoseconds took{};
  bool was_there = false;  // and nothing was done
};

// "step 1200 copied to s3://lab/run7: 38.2 GB in 5 m 10 s, 123 MB/s"
std::string Describe(const Copied& copied, const std::string& to);

struct MirrorOptions {
  Identity self;  // of the caller: cluster, job, step and restart; the rest is filled in
  FileMode mode;
  uint64_t bytes_per_second = 0;  // at most; 0 = no limit
  std::optional<KeepRules> keep;  // what the mirror keeps, besides what is copied just now; nothing = all
  std::function<void(const std::string& line)> say;                                      // any thread
  std::function<void(const Checkpoint& what, uint64_t done, uint64_t total)> under_way;  // bytes
  std::function<void(const Copied& copied)> copied;
  // A checkpoint of the run that cannot be copied: kDamage, or kNotFound: it was pruned meanwhile. The others are.
  std::function<void(const std::string& checkpoint, const Status& why)> passed_over;
  std::stop_token stop;
};

// kInvalid when the place is the run's directory or lies in it.
Status MayMirror(const std::string& from, const std::string& to);

class Mirror {
 public:
  // `to`: absolute (AbsolutePath), or s3://BUCKET/PREFIX. Both need not be there yet.
  Mirror(std::string from, std::string to, MirrorOptions options);
  ~Mirror();

  // Copies those of the checkpoints (names) that are not there yet, the oldest first, and brings tags and the end of the run along. The journal
  // of a run in a directory tells of each, and of a failure (one in a bucket has lines of its lives alone). OK also where some were passed over.
  // kMismatch: the mirror is of another run, or of another continuation of it, or a run goes on there; kBusy: another mirrors, or a life
  // owns the mirror; kCancelled: it was stopped. Those before are copied then.
  Status Copy(const std::vector<std::string>& checkpoints);

  // How much later the checkpoint should have been saved to be `every` behind the newest copy that is there; 0 = it is late enough, or there itself.
  Result<Nanoseconds> TooEarly(const Checkpoint& what, Nanoseconds every) const;

 private:
  Status CopyAll(const std::vector<std::string>& checkpoints);
  Result<RunDirectory> OpenMirror(const RunDirectory& run) const;
  Status CopyOne(const RunDirectory& run, const RunDirectory& there, const Checkpoint& what);
  Result<std::string> FindWhole(const RunDirectory& run, const RunDirectory& there, const Checkpoint& what);
  Status Write(const LoadedCheckpoint& what, const Checkpoint& listed, Copied* copied);
  Status Own(const RunDirectory& run);
  enum class Which { kWithTheirCheckpoint, kAll };
  Status BringParents(const RunDirectory& run, const RunDirectory& there, Which which);
  Status BringTags(const RunDirectory& run, const Listing& listing, const RunDirectory& there,
                   const Listing& copies);
  Status BringMarks(const RunDirectory& run, const Listing& listing, const RunDirectory& there);
  Status Prune(const RunDirectory& run, const RunDirectory& there);
  void PassOver(const RunDirectory& run, const std::string& name, const Status& why) const;

  const std::string from_, to_;
  const MirrorOptions options_;
  std::unique_ptr<Life> life_;      // while something is being written
  std::vector<std::string> fresh_;  // of the mirror: what the copy under way has brought or found
  LeaseWatch leases_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_MIRROR_MIRROR_H_
