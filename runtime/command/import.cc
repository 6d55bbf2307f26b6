#include "runtime/interop/import.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/command/names_file.h"
#include "runtime/command/numbers.h"
#include "runtime/command/progress_bar.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"
#include "runtime/interop/foreign.h"
#include "runtime/interop/new_run.h"
#include "runtime/staging/memory_room.h"
#include "runtime/version.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

struct ImportRequest {
  std::string from, source, dir, name, names;
  int64_t step = 0;
  bool link = false;
};

Result<int> Import(const ImportRequest& request, bool json) {
  if (request.link && request.from == "dcp")
    return Status(Code::kInvalid,
                  "--link: a dcp checkpoint holds archives of torch.save, which are no shards of Cairn's: "
                  "leave it out, and the tensors are copied");
  CAIRN_ASSIGN_OR_RETURN(const NameMap names, ReadNames(request.names));
  std::error_code error;
  const std::string path = fs::absolute(request.source, error).lexically_normal();
  if (error) return Status::FromErrno(error.value(), "find " + request.source);
  CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<StoredSource> source, OpenForeign(request.from, path));
  CAIRN_ASSIGN_OR_RETURN(const std::vector<NamedArray> arrays, ApplyNames(names, source->arrays()));
  NewRun run;
  run.path = request.dir;
  run.name = request.name.empty() ? fs::path(path).filename().string() : request.name;
  run.origin = {request.from, path, "", ""};
  run.step = request.step;
  run.cairn_version = kVersion;
  uint64_t bytes = 0;
  Sharing sharing = Sharing::kCopy;
  ProgressBar bar;
  const Progress progress = [&](uint64_t done, uint64_t total) { bar.Draw(done, total); };
  CAIRN_ASSIGN_OR_RETURN(
      const FinishedRun made, MakeRun(run, [&](const std::string& folder) -> Result<FirstCheckpoint> {
        FirstCheckpoint first;
        CAIRN_ASSIGN_OR_RETURN(first.index, request.link ? LinkArrays(*source, folder, progress, &sharing)
                                                         : ImportArrays(*source, arrays, folder, progress));
        for (const ShardRecord& file : first.index.files) bytes += file.bytes;
        first.manifest.label = request.step;
        first.manifest.trigger = "import";
        return first;
      }));
  if (json) {
    PrintJson({{"dir", made.path},
               {"checkpoint", made.checkpoint},
               {"step", request.step},
               {"arrays", arrays.size()},
               {"bytes", bytes},
               {"sharing", SharingName(sharing)},
               {"left_out", source->others()}});
    return kExitGood;
  }
  std::printf("%s begins at step %lld with %s, %s, %s of %s\n", made.path.c_str(),
              static_cast<long long>(request.step), Count(arrays.size(), "array").c_str(),
              FormatBytes(bytes).c_str(), std::string(SharingName(sharing)).c_str(), path.c_str());
  if (const auto others = source->others(); !others.empty())
    std::printf("left out, since they are no tensors: %s\n", Join(others).c_str());
  return kExitGood;
}

}  // namespace

void AddImport(CLI::App* app, Invocation* invocation) {
  auto request = std::make_shared<ImportRequest>();
  Subcommand sub = AddSubcommand(
      app, invocation, "import",
      "Begin a new run from a checkpoint of others: a directory DIR whose first checkpoint holds its "
      "tensors,\n"
      "with checksums from now on. No PyTorch is needed, and nothing in the files is ever run. Start a job\n"
      "with --checkpoint-dir=DIR to go on from it.\n"
      "  dcp          a folder of torch.distributed.checkpoint\n"
      "  safetensors  one file, or a folder of them (also PyTorch's sharded ones); hf is the same",
      "cairn import --from dcp /scratch/me/old/step-9000 /scratch/me/run8 --step 9000",
      [=] { return Import(*request, invocation->json); });
  sub.Option("--from", "dcp|hf|safetensors", &request->from, "the format")
      .Required()
      .OneOf({"dcp", "hf", "safetensors"});
  sub.Positional("SRC", &request->source, "the file or folder to read");
  sub.Positional("DIR", &request->dir, "the run's directory to make");
  const Argument names =
      sub.Option("--names", "FILE", &request->names, "JSON object of new names, as for `cairn export`");
  sub.Flag("--link", &request->link,
           "of safetensors: copy nothing, but share the files (reflink, else hard link, else a copy). A\n"
           "file that is shared by a hard link must not be written into any more, by nobody")
      .Excludes(names);
  sub.Option("--name", "NAME", &request->name, "what the run is called; SRC's last part by default");
  sub.Option("--step", "N", &request->step, "at which step it begins")
      .Check(WholeNumber(0, INT64_MAX))
      .ShowDefault();
}

}  // namespace cairn
