#include "runtime/command/subcommand.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cairn {

CLI::App* AddSubcommand(CLI::App* app, Invocation* invocation, const std::string& name,
                        const std::string& description, const std::string& example,
                        std::function<Result<int>()> body, ExitCode failed) {
  CLI::App* sub = app->add_subcommand(name, description);
  sub->footer("Example:\n  " + example);
  sub->add_flag("--json", invocation->json, "print one JSON document");
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
  return sub;
}

void PrintJson(const nlohmann::ordered_json& document) {
  // Names and reasons may hold bytes that are no UTF-8.
  const std::string text = document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
}

}  // namespace cairn
