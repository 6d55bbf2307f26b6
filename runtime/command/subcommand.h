// What all subcommands of `cairn` share: how they describe their arguments, --json, the exit code, and how an error is told.
//
// One thread. Each subcommand is a file of its own that offers one function of subcommands.h. CLI11 parses the command line and writes --help; what
// includes it takes the compiler ten seconds, so that subcommand.cc does it for all.
#ifndef CAIRN_RUNTIME_COMMAND_SUBCOMMAND_H_
#define CAIRN_RUNTIME_COMMAND_SUBCOMMAND_H_

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "planner/base/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cairn {

// The exit codes of `cairn`.
enum ExitCode : int {
  kExitGood = 0,
  kExitBad = 1,      // something bad was found, or the request was refused or failed
  kExitUsage = 2,    // the command line itself is wrong
  kExitUnknown = 3,  // of a command whose 1 is an answer: nothing was found out
};

// Of one call of the program; RunCommandLine owns it.
struct Invocation {
  bool json = false;
  int exit_code = kExitGood;
};

// Where the value of an argument goes, if the user gives one. It outlives the parsing: the body of the subcommand owns it.
using Value = std::variant<std::string*, std::vector<std::string>*, int*, std::optional<int>*, int64_t*,
                           uint32_t*, uint64_t*, double*>;

// A positional, an option or a flag. A handle: copies are of the same one, which lives as long as the app.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument Optional() const;                             // a positional that may be left out
  Argument Required() const;                             // an option that may not
  Argument ShowDefault() const;                          // --help says what the variable holds
  Argument FromVariable(const std::string& name) const;  // of the environment, where the option is not given
  Argument Needs(const Argument& other) const;
  Argument Excludes(const Argument& other) const;

  // `check` returns what is wrong with the text that the user gave, or "" (numbers.h).
  Argument Check(std::function<std::string(const std::string&)> check) const;
  Argument OneOf(const std::vector<std::string>& words) const;
  Argument AsNumber(
      const std::map<std::string, int>& words) const;  // in any case; the value is the word's number
  Argument Bytes() const;                              // 5000000, 5MB, 5MiB

 private:
  CLI::Option* option_;
};

class Subcommand {
 public:
  explicit Subcommand(CLI::App* app) : app_(app) {}

  // In the order of the command line. `name` is what --help calls it, a vector takes all that follow.
  Argument Positional(const std::string& name, Value value, const std::string& help);
  // `names`: "-o,--output"; `takes`: "FILE", as --help says.
  Argument Option(const std::string& names, const std::string& takes, Value value, const std::string& help);
  // `given` may be null: of a flag that the body need not know.
  Argument Flag(const std::string& names, bool* given, const std::string& help);

  // How many options are given, at least and at most.
  void RequireOptions(size_t least, size_t most);

 private:
  CLI::App* app_;
};

// Adds the subcommand `name` with --json. When the user chose it, `body` runs: the ExitCode that it returns
// is the program's; an error is told on stderr (and, with --json, as {"error":{"code","message"}}) and makes
// it kExitUsage for kInvalid, else `failed`. `invocation` outlives `app`.
Subcommand AddSubcommand(CLI::App* app, Invocation* invocation, const std::string& name,
                         const std::string& description, const std::string& example,
                         std::function<Result<int>()> body, ExitCode failed = kExitBad);

// The same without --json.
Subcommand AddPlainSubcommand(CLI::App* app, Invocation* invocation, const std::string& name,
                              const std::string& description, const std::string& example,
                              std::function<Result<int>()> body, ExitCode failed = kExitBad);

// Prints one JSON document on stdout.
void PrintJson(const nlohmann::ordered_json& document);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_SUBCOMMAND_H_
