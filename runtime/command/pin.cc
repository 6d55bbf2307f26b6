#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/catalog/marks.h"
#include "runtime/catalog/target.h"
#include "runtime/command/subcommands.h"

namespace cairn {
namespace {

Result<int> SetPinned(const std::string& target, bool pinned, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const Chosen chosen, ChooseCheckpoint(target));
  const std::string& name = chosen.checkpoint.name;
  if (pinned) {
    CAIRN_RETURN_IF_ERROR(Pin(chosen.dir, name));
  } else {
    CAIRN_ASSIGN_OR_RETURN(const auto pins, ReadPins(chosen.dir));
    if (!pins.contains(name))
      return Status(Code::kNotFound, name + " of " + chosen.dir.path() + " is not pinned");
    CAIRN_RETURN_IF_ERROR(Unpin(chosen.dir, name));
  }
  if (json) {
    PrintJson({{"dir", chosen.dir.path()}, {"checkpoint", name}, {"pinned", pinned}});
  } else {
    std::printf("%s %s\n", name.c_str(),
                pinned ? "is pinned: it is never pruned"
                       : "is not pinned any more: it is kept only as long as retention says");
  }
  return kExitGood;
}

void AddPinOrUnpin(CLI::App* app, Invocation* invocation, bool pinned, const char* name,
                   const char* description) {
  auto target = std::make_shared<std::string>();
  Subcommand sub = AddSubcommand(app, invocation, name, description,
                                 std::string("cairn ") + name + " /scratch/me/run7@1200",
                                 [=] { return SetPinned(*target, pinned, invocation->json); });
  sub.Positional("DIR@STEP", target.get(), "which checkpoint; without @ the newest");
}

}  // namespace

void AddPins(CLI::App* app, Invocation* invocation) {
  AddPinOrUnpin(
      app, invocation, true, "pin",
      "Keep a checkpoint: however many newer ones follow, it is never pruned until it is unpinned.");
  AddPinOrUnpin(app, invocation, false, "unpin",
                "Take a pin away: the checkpoint is kept only as long as --checkpoint-keep says, which may "
                "be until the\n"
                "next save.");
}

}  // namespace cairn
