// What all subcommands of `cairn` share: --json, the exit code, and how an error is told.
//
// One thread. Each subcommand is a file of its own that offers one function of subcommands.h.
#ifndef CAIRN_RUNTIME_COMMAND_SUBCOMMAND_H_
#define CAIRN_RUNTIME_COMMAND_SUBCOMMAND_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "planner/base/status.h"

namespace CLI {
class App;
}

namespace cairn {

// The exit codes of `cairn`.
enum ExitCode : int {
  kExitGood = 0,
  kExitBad = 1,      // something bad was found, or the request was refused or failed
  kExitUsage = 2,    // the command line itself is wrong
  kExitUnknown = 3,  // of a command whose 1 is an answer: nothing was found out
};

// Of one call of the program; main owns it.
struct Invocation {
  bool json = false;
  int exit_code = kExitGood;
};

// Adds the subcommand `name` with --json. When the user chose it, `body` runs: the ExitCode that it returns
// is the program's; an error is told on stderr (and, with --json, as {"error":{"code","message"}}) and makes
// it kExitUsage for kInvalid, else `failed`. `invocation` outlives `app`.
CLI::App* AddSubcommand(CLI::App* app, Invocation* invocation, const std::string& name,
                        const std::string& description, const std::string& example,
                        std::function<Result<int>()> body, ExitCode failed = kExitBad);

// Prints one JSON document on stdout.
void PrintJson(const nlohmann::ordered_json& document);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_SUBCOMMAND_H_
