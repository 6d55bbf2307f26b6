// `cairn completion`: scripts by which shells complete the command's arguments, made of its own command line.

#include <algorithm>
#include <cstdio>
#include <memory>

#include "runtime/command/command_tree.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"

namespace cairn {
namespace {

// The beginning of a text, up to its first comma or the like: for one line of a list.
std::string FirstWords(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (const char* end : {". ", ", ", ": ", "; ", " ("}) text = text.substr(0, text.find(end));
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text;
}

// In single quotes, which hold everything but themselves.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string Escaped(const std::string& text, const std::string& special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::vector<std::string> NamesOf(const std::vector<ArgumentInfo>& options) {
  std::vector<std::string> names;
  for (const ArgumentInfo& option : options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

// The script knows kinds as `directory`, `file`, `command`, choices as they are written here, and nothing.
std::string BashKind(const std::string& value) {
  switch (KindOf(value)) {
    case ValueKind::kNothing:
      return "";
    case ValueKind::kChoices:
      return Join(ChoicesOf(value), ",");
    case ValueKind::kFile:
      return "file";
    case ValueKind::kDirectory:
      return "directory";
    case ValueKind::kCommand:
      return "command";
  }
  return "";
}

std::string BashScript(const std::vector<CommandInfo>& tree) {
  std::string cases, commands;
  for (const CommandInfo& command : tree) {
    commands += command.name + " ";
    std::vector<std::string> takes, positions;
    for (const ArgumentInfo& option : command.options) {
      for (const std::string& name : option.names) {
        if (!option.value.empty()) takes.push_back(name + "=" + BashKind(option.value));
      }
    }
    for (const ArgumentInfo& positional : command.positionals)
      positions.push_back(Quoted(BashKind(positional.value)));
    cases += "    " + command.name + ") options=" + Quoted(Join(NamesOf(command.options), " ")) +
             " takes=" + Quoted(Join(takes, " ")) + " positions=(" + Join(positions, " ") + ") ;;\n";
  }
  return R"(# bash completion for cairn, made by `cairn completion bash`

_cairn() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local command='' options='' takes='' positions=() kind='' at=0 i=1 entry
  # --option=value comes as three words.
  if [[ $word == = ]]; then word=''; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  COMPREPLY=()

  for (( ; i < COMP_CWORD && ! ${#command}; ++i)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; fi
  done
  case $command in
)" + cases +
         R"(    '') COMPREPLY=($(compgen -W ')" + commands + R"(--help --version' -- "$word")); return ;;
    *) return ;;
  esac

  # `at`: how many arguments stand before this word that are neither options nor their values.
  for (( ; i < COMP_CWORD; ++i)); do
    case " $takes" in
      *" ${COMP_WORDS[i]}="*) if [[ ${COMP_WORDS[i + 1]} == = ]]; then ((i += 2)); else ((i += 1)); fi ;;
      *) if [[ ${COMP_WORDS[i]} != -* ]]; then ((++at)); fi ;;
    esac
  done

  kind=${positions[at]}
  if [[ $kind != command && $word == -* ]]; then kind=${options// /,}; fi
  if [[ ${positions[0]} == command ]]; then
    if ((at > 0)); then kind=file; elif [[ $word == -* ]]; then kind=${options// /,}; fi
  fi
  for entry in $takes; do
    if [[ $entry == "$before="* ]]; then kind=${entry#*=}; fi
  done
  case $kind in
    '') ;;
    file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    directory) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    command) mapfile -t COMPREPLY < <(compgen -c -- "$word") ;;
    *) COMPREPLY=($(compgen -W "${kind//,/ }" -- "$word")) ;;
  esac
}

complete -F _cairn cairn
)";
}

std::string ZshAction(const std::string& value) {
  switch (KindOf(value)) {
    case ValueKind::kNothing:
      return " ";
    case ValueKind::kChoices:
      return "(" + Join(ChoicesOf(value), " ") + ")";
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kDirectory:
      return "_directories";
    case ValueKind::kCommand:
      return "_normal";
  }
  return "";
}

std::string ZshScript(const std::vector<CommandInfo>& tree) {
  std::string commands, cases;
  for (const CommandInfo& command : tree) {
    commands += "    " + Quoted(command.name + ":" + Escaped(FirstWords(command.description), ":\\")) + "\n";
    cases += "        " + command.name + ")\n          _arguments";
    for (const ArgumentInfo& option : command.options) {
      for (const std::string& name : option.names) {
        std::string spec = name;
        if (!option.value.empty() && name.rfind("--", 0) == 0) spec += '=';
        spec += "[" + Escaped(FirstWords(option.help), "[]:\\") + "]";
        if (!option.value.empty()) spec += ":" + Escaped(option.value, ":\\") + ":" + ZshAction(option.value);
        cases += " \\\n            " + Quoted(spec);
      }
    }
    for (const ArgumentInfo& positional : command.positionals) {
      const std::string message = Escaped(positional.value, ":\\");
      cases += " \\\n            " + Quoted((positional.repeats    ? "*::"
                                             : positional.required ? ":"
                                                                   : "::") +
                                            message + ":" + ZshAction(positional.value));
    }
    cases += " ;;\n";
  }
  return R"(#compdef cairn
# zsh completion for cairn, made by `cairn completion zsh`

_cairn() {
  local curcontext=$curcontext state line
  local -a commands=(
)" + commands +
         R"(  )
  _arguments -C '(- *)--help[say what there is]' '(- *)--version[say which version this is]' ':command:->command' '*::argument:->argument'
  case $state in
    command) _describe -t commands command commands ;;
    argument)
      case $words[1] in
)" + cases +
         R"(      esac ;;
  esac
}

if [[ $funcstack[1] == _cairn ]]; then _cairn "$@"; else compdef _cairn cairn; fi
)";
}

std::string FishAction(const std::string& value) {
  switch (KindOf(value)) {
    case ValueKind::kNothing:
      return " -x";
    case ValueKind::kChoices:
      return " -x -a " + Quoted(Join(ChoicesOf(value), " "));
    case ValueKind::kDirectory:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kFile:
    case ValueKind::kCommand:
      return " -r -F";
  }
  return "";
}

std::string FishScript(const std::vector<CommandInfo>& tree) {
  std::string script =
      "# fish completion for cairn, made by `cairn completion fish`\n\n"
      "complete -c cairn -f\n"
      "complete -c cairn -n __fish_use_subcommand -l help -d 'say what there is'\n"
      "complete -c cairn -n __fish_use_subcommand -l version -d 'say which version this is'\n";
  for (const CommandInfo& command : tree) {
    script += "\ncomplete -c cairn -n __fish_use_subcommand -a " + command.name + " -d " +
              Quoted(FirstWords(command.description)) + "\n";
    const std::string seen = "complete -c cairn -n '__fish_seen_subcommand_from " + command.name + "'";
    for (const ArgumentInfo& option : command.options) {
      script += seen;
      for (const std::string& name : option.names) {
        script += name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (!option.value.empty()) script += FishAction(option.value);
      script += " -d " + Quoted(FirstWords(option.help)) + "\n";
    }
    for (const ArgumentInfo& positional : command.positionals) {
      switch (KindOf(positional.value)) {
        case ValueKind::kFile:
          script += seen + " -F\n";
          break;
        case ValueKind::kDirectory:
          script += seen + " -a '(__fish_complete_directories)'\n";
          break;
        case ValueKind::kCommand:
          script += seen + " -a '(__fish_complete_subcommand)'\n";
          break;
        case ValueKind::kNothing:
        case ValueKind::kChoices:
          break;
      }
    }
  }
  return script;
}

int PrintScript(const std::vector<CommandInfo>& tree, const std::string& shell) {
  const std::string script = shell == "bash"  ? BashScript(tree)
                             : shell == "zsh" ? ZshScript(tree)
                                              : FishScript(tree);
  std::fputs(script.c_str(), stdout);
  return kExitGood;
}

}  // namespace

void AddCompletion(CLI::App* app, Invocation* invocation) {
  auto shell = std::make_shared<std::string>();
  Subcommand completion = AddPlainSubcommand(
      app, invocation, "completion",
      "Print a script by which a shell completes the arguments of this command. An installed Cairn brings "
      "them along,\n"
      "where the shells look for them.",
      "source <(cairn completion bash)", [=] { return PrintScript(CommandTree(*app), *shell); });
  completion.Positional("bash|zsh|fish", shell.get(), "the shell").OneOf({"bash", "zsh", "fish"});
}

}  // namespace cairn
