#include "runtime/command/state.h"

#include <filesystem>

#include "runtime/catalog/target.h"
#include "runtime/interop/foreign.h"

namespace cairn {

namespace fs = std::filesystem;

Result<std::unique_ptr<CheckpointSource>> OpenCheckpoint(const std::string& text) {
  CAIRN_ASSIGN_OR_RETURN(const Chosen chosen, ChooseCheckpoint(text));
  return CheckpointSource::Open(chosen.dir, chosen.checkpoint.name);
}

Result<State> OpenState(const std::string& text) {
  std::error_code error;
  const fs::path path = fs::absolute(text, error).lexically_normal();
  if (error) return Status::FromErrno(error.value(), "find " + text);
  CAIRN_ASSIGN_OR_RETURN(const std::string format, ForeignFormat(path));
  if (!format.empty()) {
    CAIRN_ASSIGN_OR_RETURN(std::unique_ptr<ArraySource> source, OpenForeign(format, path));
    return State{path, std::move(source)};
  }
  CAIRN_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointSource> source, OpenCheckpoint(text));
  std::string folder = source->checkpoint().path;
  return State{std::move(folder), std::move(source)};
}

}  // namespace cairn
