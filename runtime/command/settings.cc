#include "runtime/settings.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/command/subcommands.h"
#include "runtime/command/text.h"

namespace cairn {
namespace {

using Json = nlohmann::ordered_json;

std::string OptionOf(const SettingInfo& info) {
  if (info.option.empty()) return "";
  const std::string name = "--" + std::string(info.option);
  if (info.argument.empty()) return name;
  const std::string argument(info.argument);
  return argument.front() == '[' ? name + "[=" + argument.substr(1) : name + "=" + argument;
}

// Of a setting without an option it says which values there are.
std::string VariableOf(const SettingInfo& info) {
  std::string name(info.env);
  return info.option.empty() ? name + "=" + std::string(info.argument) : name;
}

std::string MarkdownCode(const std::string& text) {
  if (text.empty()) return "";
  std::string escaped;
  for (char c : text) escaped += c == '|' ? "\\|" : std::string(1, c);
  return "`" + escaped + "`";
}

void PrintMarkdown() {
  std::printf(
      "| srun, sbatch, salloc | environment | plugstack.conf | default | meaning |\n|---|---|---|---|---|\n");
  for (int i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = GetSettingInfo(static_cast<SettingId>(i));
    std::printf("| %s | %s | %s | %s | %s |\n", MarkdownCode(OptionOf(info)).c_str(),
                MarkdownCode(VariableOf(info)).c_str(),
                MarkdownCode(info.key.empty() ? "" : std::string(info.key) + "=").c_str(),
                MarkdownCode(std::string(info.fallback)).c_str(), std::string(info.help).c_str());
  }
}

void PrintMan() {
  const auto bold = [](std::string text) {
    for (size_t at = 0; (at = text.find('-', at)) != std::string::npos; at += 2) text.insert(at, "\\");
    return "\\fB" + text + "\\fR";
  };
  for (int i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = GetSettingInfo(static_cast<SettingId>(i));
    const std::string option = OptionOf(info), fallback(info.fallback);
    std::printf(".TP\n%s%s\n%s%s\n", option.empty() ? "" : (bold(option) + ", ").c_str(),
                bold(VariableOf(info)).c_str(), std::string(info.help).c_str(),
                fallback.empty() || fallback == "auto" ? "" : ("; default: " + fallback).c_str());
  }
}

void PrintText() {
  Table table({{"OPTION"}, {"ENVIRONMENT"}, {"DEFAULT"}, {"MEANING"}});
  for (int i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = GetSettingInfo(static_cast<SettingId>(i));
    table.AddRow({OptionOf(info), VariableOf(info), std::string(info.fallback), std::string(info.help)});
  }
  std::printf("%s", table.ToString().c_str());
}

void PrintDocument() {
  Json settings = Json::array();
  for (int i = 0; i < kSettingCount; ++i) {
    const SettingInfo& info = GetSettingInfo(static_cast<SettingId>(i));
    settings.push_back({{"id", info.id},
                        {"option", info.option},
                        {"environment", info.env},
                        {"plugstack_key", info.key},
                        {"argument", info.argument},
                        {"default", info.fallback},
                        {"meaning", info.help}});
  }
  PrintJson({{"settings", std::move(settings)}});
}

}  // namespace

void AddSettings(CLI::App* app, Invocation* invocation) {
  auto markdown = std::make_shared<bool>(false), man = std::make_shared<bool>(false);
  Subcommand settings = AddSubcommand(
      app, invocation, "settings",
      "List all settings: the option of srun, sbatch and salloc, the environment variable, the default and\n"
      "what it means. An option wins over the environment, which wins over the site's default.",
      "cairn settings", [=]() -> Result<int> {
        if (invocation->json) {
          PrintDocument();
        } else if (*markdown) {
          PrintMarkdown();
        } else if (*man) {
          PrintMan();
        } else {
          PrintText();
        }
        return kExitGood;
      });
  settings.Flag("--markdown", markdown.get(), "as the table of docs/reference/settings.md");
  settings.Flag("--man", man.get(), "as the section of docs/man/cairn.7");
}

}  // namespace cairn
