#include "runtime/interop/export.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/command/names_file.h"
#include "runtime/command/progress_bar.h"
#include "runtime/command/state.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"
#include "runtime/interop/dcp.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

struct ExportRequest {
  std::string target, to, out, names;
  uint64_t file_limit = 5'000'000'000;
  bool strict = false;
};

// The blobs under their new names.
std::vector<BlobItem> Rename(const NameMap& names, const Blobs& blobs) {
  std::vector<BlobItem> renamed;
  for (BlobItem item : blobs.items) {
    std::optional<std::string> name = names.Map(item.name);
    if (!name) continue;
    item.name = *std::move(name);
    renamed.push_back(std::move(item));
  }
  return renamed;
}

Result<int> RunExport(const ExportRequest& request, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const NameMap names, ReadNames(request.names));
  CAIRN_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointSource> source, OpenCheckpoint(request.target));
  CAIRN_ASSIGN_OR_RETURN(const std::vector<NamedArray> arrays, ApplyNames(names, source->arrays()));
  const bool carries_blobs = request.to == "dcp";
  const std::vector<BlobItem> blobs = Rename(names, source->checkpoint().blobs);
  std::vector<std::string> carried, left_out;
  for (const BlobItem& blob : blobs) (carries_blobs ? carried : left_out).push_back(blob.name);
  if (request.strict && !left_out.empty())
    return Status(Code::kMismatch,
                  request.to + " holds arrays alone, and these blobs would be left out: " + Join(left_out) +
                      "; `--to dcp` takes them along, --names can drop them");
  Exported exported;
  {
    ProgressBar bar;
    const Progress progress = [&](uint64_t done, uint64_t total) { bar.Draw(done, total); };
    if (request.to == "safetensors") {
      CAIRN_ASSIGN_OR_RETURN(exported, ExportSafetensors(*source, arrays, request.out, progress));
    } else if (request.to == "dcp") {
      CAIRN_ASSIGN_OR_RETURN(exported,
                             ExportDcp(*source, arrays, blobs, request.out, request.file_limit, progress));
    } else {
      CAIRN_ASSIGN_OR_RETURN(exported,
                             ExportHuggingFace(*source, arrays, request.out, request.file_limit, progress));
    }
  }
  std::vector<std::string> reversed;
  for (const NamedArray& named : arrays) {
    if (source->arrays()[named.array].fortran) reversed.push_back(named.name);
  }
  const std::string& checkpoint = source->checkpoint().name;
  if (json) {
    PrintJson({{"checkpoint", checkpoint},
               {"format", request.to},
               {"path", exported.path},
               {"files", exported.files},
               {"bytes", exported.bytes},
               {"arrays", arrays.size()},
               {"reversed", reversed},
               {"blobs", carried},
               {"left_out", left_out}});
    return kExitGood;
  }
  std::printf("%s: %s, %s, from %s\n", exported.path.c_str(), Count(arrays.size(), "array").c_str(),
              FormatBytes(exported.bytes).c_str(), checkpoint.c_str());
  if (!reversed.empty()) {
    std::printf("in Fortran order, so their dimensions are reversed there: %s\n", Join(reversed).c_str());
  }
  if (!carried.empty()) std::printf("with the blobs: %s\n", Join(carried).c_str());
  if (!left_out.empty())
    std::printf("left out, since they are no arrays: the blobs %s\n", Join(left_out).c_str());
  return kExitGood;
}

}  // namespace

void AddExport(CLI::App* app, Invocation* invocation) {
  auto request = std::make_shared<ExportRequest>();
  Subcommand sub = AddSubcommand(
      app, invocation, "export",
      "Write a checkpoint in a format of others, byte for byte. Every block is checked while\n"
      "it is read. OUT appears when it is whole and durable; it must not be there before.\n"
      "  safetensors  one file\n"
      "  hf           a folder of model-0000I-of-0000N.safetensors and model.safetensors.index.json\n"
      "  dcp          a folder that torch.distributed.checkpoint.load reads; blobs (generators, values of "
      "the\n"
      "               program) are in it as lists of the bytes of each rank; the others cannot hold them",
      "cairn export /scratch/me/run7@best --to hf /scratch/me/model --names names.json",
      [=] { return RunExport(*request, invocation->json); });
  sub.Positional("DIR[@STEP|@TAG]", &request->target, "which checkpoint; without @ the newest");
  sub.Positional("OUT", &request->out, "the file or folder to make");
  sub.Option("--to", "safetensors|hf|dcp", &request->to, "the format")
      .Required()
      .OneOf({"safetensors", "hf", "dcp"});
  sub.Option("--names", "FILE", &request->names,
             R"(JSON object of new names: {"model.*": "*", "optim.*": null}; null leaves out)");
  sub.Flag("--strict", &request->strict, "fail, rather than leave out blobs that the format cannot hold");
  sub.Option("--file-limit", "SIZE", &request->file_limit,
             "hf and dcp: bytes of arrays in one file, 5GB by default")
      .Bytes();
}

}  // namespace cairn
