// OpenedState: how a user names a set of arrays, whichever format it is in. Blocking I/O; one thread.
//
//   DIR, DIR@STEP, DIR@TAG   a checkpoint of Cairn (target.h)
//   FILE.safetensors         one file
//   FOLDER                   a checkpoint of torch.distributed.checkpoint if it has .metadata, else the *.safetensors in it
#ifndef CAIRN_RUNTIME_COMMAND_STATE_H_
#define CAIRN_RUNTIME_COMMAND_STATE_H_

#include <memory>
#include <string>

#include "planner/base/status.h"
#include "runtime/interop/array_source.h"
#include "runtime/interop/checkpoint_source.h"

namespace cairn {

// The checkpoint that `text` names (target.h), open for reading.
Result<std::unique_ptr<CheckpointSource>> OpenCheckpoint(const std::string& text);

struct OpenedState {
  std::string path;  // absolute: of the checkpoint's folder, the file or the folder
  std::unique_ptr<ArraySource> source;
};
Result<OpenedState> OpenState(const std::string& text);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_STATE_H_
