// MakeRun: a new run's directory whose first checkpoint is not of its own making: a fork, or an import.
//
//   1. Everything is made under a temporary name beside its place (output.h): RUN, with the origin; epoch 1, which begins fresh.
//   2. The caller makes the files of the checkpoint's arrays.
//   3. It is committed as any other, and epoch 1's holder leaves in good order: the first life that comes claims epoch 2 and goes on from it.
//   4. The directory gets its name.
#ifndef CAIRN_RUNTIME_INTEROP_NEW_RUN_H_
#define CAIRN_RUNTIME_INTEROP_NEW_RUN_H_

#include <cstdint>
#include <functional>
#include <string>

#include "planner/base/status.h"
#include "runtime/catalog/run_directory.h"
#include "runtime/formats/blobs.h"
#include "runtime/formats/index.h"
#include "runtime/formats/manifest.h"

namespace cairn {

struct NewRun {
  std::string path;  // where it will be; must not be there, save for an empty folder
  std::string name;
  Origin origin;
  int64_t step = 0;
  std::string cairn_version;
};

// What step 2 gives. Of `manifest` what Commit asks for, but for run_id, parent and cairn_version.
struct FirstCheckpoint {
  Index index;
  Blobs blobs;
  Manifest manifest;
};

struct FinishedRun {
  std::string path;  // absolute
  std::string checkpoint;
};

// `fill` makes shards and sums in the folder that it is given, durably but for their names.
Result<FinishedRun> MakeRun(const NewRun& run,
                            const std::function<Result<FirstCheckpoint>(const std::string& folder)>& fill);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_NEW_RUN_H_
