#include "runtime/interop/new_run.h"

#include <unistd.h>

#include "runtime/catalog/beat.h"
#include "runtime/catalog/commit.h"
#include "runtime/catalog/epoch.h"
#include "runtime/formats/names.h"
#include "runtime/interop/output.h"

namespace cairn {

Result<FinishedRun> MakeRun(const NewRun& run,
                            const std::function<Result<FirstCheckpoint>(const std::string&)>& fill) {
  CAIRN_ASSIGN_OR_RETURN(Output output, Output::Folder(run.path));
  CAIRN_ASSIGN_OR_RETURN(const RunDirectory dir,
                         RunDirectory::Open(output.temporary(), run.name, {}, run.origin));
  Identity self;
  char node[256] = "";
  (void)gethostname(node, sizeof node - 1);
  self.node = node;
  self.pid = getpid();
  self.uid = getuid();
  self.cairn_version = run.cairn_version;
  self.started = UtcNow();
  CAIRN_ASSIGN_OR_RETURN(const uint32_t epoch, ClaimEpoch(dir, 0, self));
  CAIRN_ASSIGN_OR_RETURN(BeatFile beat, BeatFile::Create(dir.PathOf(names::AliveFile(epoch))));
  CAIRN_RETURN_IF_ERROR(PublishParent(dir, epoch, ""));

  CAIRN_ASSIGN_OR_RETURN(const Attempt attempt, BeginAttempt(dir, epoch, run.step));
  CAIRN_ASSIGN_OR_RETURN(FirstCheckpoint first, fill(attempt.path));
  first.manifest.parent.clear();
  first.manifest.outputs.clear();  // the other run's files: this one must not cut them
  first.manifest.cairn_version = run.cairn_version;
  const auto committed = Commit(dir, attempt, first.index, first.blobs, std::move(first.manifest));
  if (!committed.ok()) return committed.status();
  CAIRN_RETURN_IF_ERROR(beat.Leave());
  CAIRN_RETURN_IF_ERROR(output.Publish());
  return FinishedRun{output.path(), attempt.name.ToString()};
}

}  // namespace cairn
