#include "runtime/command/state.h"

#include "runtime/catalog/target.h"
#include "runtime/interop/foreign.h"

namespace cairn {

Result<std::unique_ptr<CheckpointSource>> OpenCheckpoint(const std::string& text) {
  CAIRN_ASSIGN_OR_RETURN(const Chosen chosen, ChooseCheckpoint(text));
  return CheckpointSource::Open(chosen.dir, chosen.checkpoint.name);
}

Result<OpenedState> OpenState(const std::string& text) {
  CAIRN_ASSIGN_OR_RETURN(const std::string path, AbsolutePath(text));
  CAIRN_ASSIGN_OR_RETURN(const std::string format, ForeignFormat(path));
  if (!format.empty()) {
    CAIRN_ASSIGN_OR_RETURN(std::unique_ptr<ArraySource> source, OpenForeign(format, path));
    return OpenedState{path, std::move(source)};
  }
  CAIRN_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointSource> source, OpenCheckpoint(text));
  std::string folder = source->checkpoint().path;
  return OpenedState{std::move(folder), std::move(source)};
}

}  // namespace cairn
