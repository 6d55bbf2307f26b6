// Target: how a user names a run's directory and one checkpoint in it. Blocking I/O; one thread.
//
//   DIR             the newest checkpoint that a restart would take
//   DIR@1200        the one of step 1200: of the run's own line if it has one, else the only orphan
//   DIR@epoch-10    the one with the tag `epoch-10`
//   DIR@best:loss:min  (or :max) of those that a restart would take, the one next to the best value of the metric `loss`
//   DIR@step-…      by its full name
//   DIR/step-…      likewise, as a shell completes it
#ifndef CAIRN_RUNTIME_CATALOG_TARGET_H_
#define CAIRN_RUNTIME_CATALOG_TARGET_H_

#include <string>

#include "planner/base/status.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

struct Target {
  std::string dir;
  std::string which;  // what stands after the @; "" = the newest

  friend bool operator==(const Target&, const Target&) = default;
};

// A directory that itself has an @ in its name is recognised when it exists; an @ before a / belongs to the path in any case. kInvalid for
// an empty DIR or an empty part after the @.
Result<Target> ParseTarget(const std::string& text);

// kInvalid for a tag that cannot be a file name, or that would read as a step or a full name after the @.
Status CheckTag(const std::string& tag);

// Opens a run for reading. kNotFound says whether the directory is missing or holds no run.
Result<RunDirectory> OpenRun(const std::string& dir);

struct Chosen {
  RunDirectory dir;
  Listing listing;
  Checkpoint checkpoint;
};

// Finds the checkpoint that `text` names. kNotFound names what is there instead.
Result<Chosen> ChooseCheckpoint(const std::string& text);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_TARGET_H_
