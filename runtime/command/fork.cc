#include "runtime/interop/fork.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/catalog/target.h"
#include "runtime/command/subcommands.h"
#include "runtime/version.h"

namespace cairn {
namespace {

Result<int> Fork(const std::string& target, const std::string& path, const std::string& name, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const Chosen chosen, ChooseCheckpoint(target));
  CAIRN_ASSIGN_OR_RETURN(const auto source, CheckpointSource::Open(chosen.dir, chosen.checkpoint.name));
  const LoadedCheckpoint& from = source->checkpoint();
  NewRun run;
  run.path = path;
  run.name = name.empty() ? chosen.dir.info().name : name;
  run.origin = {"cairn", chosen.dir.path(), chosen.dir.info().id, from.name};
  run.step = from.manifest.step;
  run.cairn_version = kVersion;
  Sharing sharing = Sharing::kReflink;
  CAIRN_ASSIGN_OR_RETURN(const FinishedRun made, MakeRun(run, [&](const std::string& folder) {
                           return LinkCheckpoint(from, folder, &sharing);
                         }));
  if (json) {
    PrintJson({{"dir", made.path},
               {"checkpoint", made.checkpoint},
               {"step", from.manifest.step},
               {"from", {{"dir", chosen.dir.path()}, {"checkpoint", from.name}}},
               {"sharing", SharingName(sharing)}});
  } else {
    std::printf("%s begins at step %lld, %s of %s\n", made.path.c_str(),
                static_cast<long long>(from.manifest.step), std::string(SharingName(sharing)).c_str(),
                from.path.c_str());
  }
  return kExitGood;
}

}  // namespace

void AddFork(CLI::App* app, Invocation* invocation) {
  auto target = std::make_shared<std::string>();
  auto path = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>();
  Subcommand fork = AddSubcommand(
      app, invocation, "fork",
      "Begin a new run from a checkpoint: a directory NEW whose first checkpoint is this one. Its bytes are\n"
      "shared where the file system can (reflink, else hard link, else a copy), so it takes little room and\n"
      "stays when the old run prunes or is removed. Start a job with --checkpoint-dir=NEW to go on from it.",
      "cairn fork /scratch/me/run7@1200 /scratch/me/run8",
      [=] { return Fork(*target, *path, *name, invocation->json); });
  fork.Positional("DIR[@STEP|@TAG]", target.get(), "which checkpoint; without @ the newest");
  fork.Positional("NEW", path.get(), "the directory to make");
  fork.Option("--name", "NAME", name.get(), "what the new run is called; the old one's name by default");
}

}  // namespace cairn
