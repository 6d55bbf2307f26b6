#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/catalog/marks.h"
#include "runtime/catalog/target.h"
#include "runtime/command/subcommands.h"

namespace cairn {
namespace {

Result<int> Tag(const std::string& target, const std::string& tag, bool json) {
  CAIRN_RETURN_IF_ERROR(CheckTag(tag));
  CAIRN_ASSIGN_OR_RETURN(const Chosen chosen, ChooseCheckpoint(target));
  CAIRN_RETURN_IF_ERROR(SetTag(chosen.dir, tag, chosen.checkpoint.name));
  if (json) {
    PrintJson({{"dir", chosen.dir.path()}, {"tag", tag}, {"checkpoint", chosen.checkpoint.name}});
  } else {
    std::printf("%s is now %s@%s, and is kept\n", chosen.checkpoint.name.c_str(), chosen.dir.path().c_str(),
                tag.c_str());
  }
  return kExitGood;
}

Result<int> Untag(const std::string& path, const std::string& tag, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const Target target, ParseTarget(path));
  if (!target.which.empty())
    return Status(Code::kInvalid, "--remove takes the directory alone, not \"" + path + "\"");
  CAIRN_ASSIGN_OR_RETURN(const RunDirectory dir, OpenRun(target.dir));
  CAIRN_ASSIGN_OR_RETURN(const auto tags, ReadTags(dir));
  if (!tags.contains(tag))
    return Status(Code::kNotFound,
                  dir.path() + " has no tag \"" + tag + "\"; `cairn ls` shows those that there are");
  CAIRN_RETURN_IF_ERROR(RemoveTag(dir, tag));
  if (json) {
    PrintJson({{"dir", dir.path()}, {"tag", tag}, {"checkpoint", nullptr}});
  } else {
    std::printf("tag %s was removed; %s is kept only as long as retention says\n", tag.c_str(),
                tags.at(tag).c_str());
  }
  return kExitGood;
}

}  // namespace

void AddTag(CLI::App* app, Invocation* invocation) {
  auto target = std::make_shared<std::string>();
  auto tag = std::make_shared<std::string>();
  auto remove = std::make_shared<bool>(false);
  Subcommand sub = AddSubcommand(
      app, invocation, "tag",
      "Give a checkpoint a name. It can then be called DIR@NAME everywhere, and is never pruned. A tag\n"
      "names one checkpoint: setting it again moves it. With --remove DIR NAME the name is taken away.",
      "cairn tag /scratch/me/run7@1200 best", [=] {
        return *remove ? Untag(*target, *tag, invocation->json) : Tag(*target, *tag, invocation->json);
      });
  sub.Positional("DIR@STEP", target.get(), "which checkpoint; without @ the newest");
  sub.Positional("NAME", tag.get(), "letters, digits and . _ + = -");
  sub.Flag("--remove", remove.get(), "take the name away");
}

}  // namespace cairn
