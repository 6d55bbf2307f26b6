#include "runtime/command/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

namespace cairn {
namespace {

ArgumentInfo InfoOf(const CLI::Option& option) {
  ArgumentInfo info;
  info.help = option.get_description();
  info.required = option.get_required();
  if (option.get_positional()) {
    info.value = option.get_name(true);
    info.names = {info.value};
    info.repeats = option.get_items_expected_max() > 1;
    return info;
  }
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) {
    // Behind the name of a type CLI11 adds what is checked.
    const std::string text =
        option.get_option_text().empty() ? option.get_type_name() : option.get_option_text();
    info.value = text.substr(0, text.find(':'));
    info.fallback = option.get_default_str();
  }
  return info;
}

}  // namespace

ValueKind KindOf(const std::string& value) {
  static const std::set<std::string> commands{"command", "srun"}, files{"A", "B", "FILE", "OUT", "SRC"},
      directories{"JOB|DIR", "NEW"};
  if (commands.contains(value)) return ValueKind::kCommand;
  if (files.contains(value)) return ValueKind::kFile;
  if (directories.contains(value) || value.rfind("DIR", 0) == 0) return ValueKind::kDirectory;
  return value.find('|') != std::string::npos ? ValueKind::kChoices : ValueKind::kNothing;
}

std::vector<std::string> ChoicesOf(const std::string& value) { return CLI::detail::split(value, '|'); }

std::vector<CommandInfo> CommandTree(const CLI::App& app) {
  std::vector<CommandInfo> tree;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    CommandInfo info{command->get_name(), command->get_description(), command->get_footer(), {}, {}};
    info.example.erase(0, info.example.find("\n  ") + 3);
    for (const CLI::Option* option : command->get_options()) {
      (option->get_positional() ? info.positionals : info.options).push_back(InfoOf(*option));
    }
    tree.push_back(std::move(info));
  }
  std::sort(tree.begin(), tree.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return tree;
}

}  // namespace cairn
