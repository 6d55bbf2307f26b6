// Foreign states: those that are not Cairn's and yet are read where they lie: a folder of torch.distributed.checkpoint (dcp.h), safetensors files and
// folders of them (safetensors_file.h). Blocking I/O.
#ifndef CAIRN_RUNTIME_INTEROP_FOREIGN_H_
#define CAIRN_RUNTIME_INTEROP_FOREIGN_H_

#include <memory>
#include <string>
#include <vector>

#include "planner/base/status.h"
#include "runtime/formats/index.h"
#include "runtime/interop/stored_source.h"

namespace cairn {

// "dcp", or "safetensors", also for a file that turns out to be none; "" for what is not there and for other folders: a run, a checkpoint and an
// attempt of Cairn's that never became one among them. Errors: it cannot be looked at.
Result<std::string> ForeignFormat(const std::string& path);

// Of such a format. Errors as OpenDcp's and OpenSafetensors'.
Result<std::unique_ptr<StoredSource>> OpenForeign(const std::string& format, const std::string& path);

// One as a load by all ranks needs it.
struct ForeignState {
  Index index;                     // as of a save of one rank; its files have no sums
  std::vector<std::string> files;  // absolute paths, as the index counts them
};

// Errors also as StoredSource::Layout's.
Result<ForeignState> DescribeForeign(const std::string& format, const std::string& path);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_FOREIGN_H_
