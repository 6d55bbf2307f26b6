// CommandTree: what `cairn` has, read from its command line's own description: for shell completion and manual pages.
//
// Pure but for reading `app`.
#ifndef CAIRN_RUNTIME_COMMAND_COMMAND_TREE_H_
#define CAIRN_RUNTIME_COMMAND_COMMAND_TREE_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cairn {

struct ArgumentInfo {
  std::vector<std::string> names;  // "-h", "--help"; of a positional, which has but one, how --help calls it
  std::string value;  // what it takes, as --help says: "FILE", "a|b"; "" = nothing; of a positional its name
  std::string fallback;  // "" = none
  std::string help;
  bool required = false;
  bool repeats = false;  // the last positional takes all that follows
};

struct CommandInfo {
  std::string name;
  std::string description;  // lines, the first sentence first
  std::string example;
  std::vector<ArgumentInfo> options;
  std::vector<ArgumentInfo> positionals;
};

// What a shell may offer for a value.
enum class ValueKind { kNothing, kChoices, kFile, kDirectory, kCommand };
ValueKind KindOf(const std::string& value);

std::vector<std::string> ChoicesOf(const std::string& value);  // of kChoices: "a|b" → a, b

std::vector<CommandInfo> CommandTree(const CLI::App& app);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_COMMAND_TREE_H_
