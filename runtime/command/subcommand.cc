#include "runtime/command/subcommand.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cairn {

Argument Argument::Optional() const { return Argument(option_->required(false)); }
Argument Argument::Required() const { return Argument(option_->required()); }
Argument Argument::ShowDefault() const { return Argument(option_->capture_default_str()); }
Argument Argument::FromVariable(const std::string& name) const { return Argument(option_->envname(name)); }
Argument Argument::Needs(const Argument& other) const { return Argument(option_->needs(other.option_)); }
Argument Argument::Excludes(const Argument& other) const {
  return Argument(option_->excludes(other.option_));
}

Argument Argument::Check(std::function<std::string(const std::string&)> check) const {
  return Argument(option_->check(std::move(check)));
}

Argument Argument::OneOf(const std::vector<std::string>& words) const {
  return Argument(option_->check(CLI::IsMember(words)));
}

Argument Argument::AsNumber(const std::map<std::string, int>& words) const {
  option_->option_text(option_->get_type_name());  // the words, without their numbers
  return Argument(option_->transform(CLI::CheckedTransformer(words, CLI::ignore_case)));
}

Argument Argument::Bytes() const {
  return Argument(option_->transform(CLI::AsSizeValue(/*kb_is_1000=*/true)));
}

Argument Subcommand::Positional(const std::string& name, Value value, const std::string& help) {
  return Option(name, "", value, help).Required();
}

Argument Subcommand::Option(const std::string& names, const std::string& takes, Value value,
                            const std::string& help) {
  CLI::Option* option = std::visit([&](auto* to) { return app_->add_option(names, *to, help); }, value);
  return Argument(option->type_name(takes));
}

Argument Subcommand::Flag(const std::string& names, bool* given, const std::string& help) {
  return Argument(given == nullptr ? app_->add_flag(names)->description(help)
                                   : app_->add_flag(names, *given, help));
}

void Subcommand::RequireOptions(size_t least, size_t most) { app_->require_option(least, most); }

Subcommand AddSubcommand(CLI::App* app, Invocation* invocation, const std::string& name,
                         const std::string& description, const std::string& example,
                         std::function<Result<int>()> body, ExitCode failed) {
  Subcommand sub = AddPlainSubcommand(app, invocation, name, description, example, std::move(body), failed);
  sub.Flag("--json", &invocation->json, "print one JSON document");
  return sub;
}

Subcommand AddPlainSubcommand(CLI::App* app, Invocation* invocation, const std::string& name,
                              const std::string& description, const std::string& example,
                              std::function<Result<int>()> body, ExitCode failed) {
  CLI::App* sub = app->add_subcommand(name, description);
  sub->footer("Example:\n  " + example);
  sub->callback([invocation, failed, body = std::move(body)] {
    const Result<int> code = body();
    if (code.ok()) {
      invocation->exit_code = *code;
      return;
    }
    const Status& status = code.status();
    invocation->exit_code = status.code() == Code::kInvalid ? kExitUsage : failed;
    std::fprintf(stderr, "cairn: %s\n", status.message().c_str());
    if (invocation->json) {
      PrintJson({{"error", {{"code", CodeName(status.code())}, {"message", status.message()}}}});
    }
  });
  return Subcommand(sub);
}

void PrintJson(const nlohmann::ordered_json& document) {
  // Names and reasons may hold bytes that are no UTF-8.
  const std::string text = document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
}

}  // namespace cairn
