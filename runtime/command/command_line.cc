#include "runtime/command/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "runtime/command/subcommands.h"
#include "runtime/version.h"

namespace cairn {
namespace {

// How many letters to leave out, put in, replace or swap with their neighbour make one word of the other.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const bool same = a[i - 1] == b[j - 1];
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

// To an app that has nothing yet.
void DescribeCommandLine(CLI::App* app, Invocation* invocation) {
  app->name("cairn");
  app->description(
      "Checkpoints of Slurm jobs. A job that was started with `srun --checkpoint` is saved and resumes "
      "after\n"
      "preemption, time limits and node failures; this command shows, checks and steers what it keeps.\n"
      "DIR is a run's directory (--checkpoint-dir), or s3://BUCKET/PREFIX; DIR@STEP and DIR@TAG name one\n"
      "checkpoint in it.");
  app->footer(
      "Each command has its own --help, with an example, and prints one JSON document with --json.\n"
      "Exit code: 0 good, 1 something bad was found or the request failed, 2 wrong usage.");
  app->set_version_flag("--version", std::string("cairn ") + kVersion);
  app->require_subcommand(1);
  AddLs(app, invocation);
  AddShow(app, invocation);
  AddVerify(app, invocation);
  AddDiff(app, invocation);
  AddExport(app, invocation);
  AddFork(app, invocation);
  AddImport(app, invocation);
  AddPlan(app, invocation);
  AddTag(app, invocation);
  AddPins(app, invocation);
  AddPrune(app, invocation);
  AddDrain(app, invocation);
  AddPush(app, invocation);
  AddRuns(app, invocation);
  AddWhy(app, invocation);
  AddReport(app, invocation);
  AddMetrics(app, invocation);
  AddStatus(app, invocation);
  AddSave(app, invocation);
  AddDoctor(app, invocation);
  AddSettings(app, invocation);
  AddResize(app, invocation);
  AddRehearse(app, invocation);
  AddRun(app, invocation);
  AddCompletion(app, invocation);
  AddHost(app, invocation);
}

// kInvalid when the first argument is the name of no subcommand, with the one that was probably meant. CLI11 would only say that a subcommand is
// missing.
Status CheckSubcommand(const CLI::App& app, int argc, const char* const* argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word.empty() || word[0] == '-') return OkStatus();
  std::string nearest;
  size_t least = word.size() / 3 + 1;  // what differs more was not meant
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const size_t distance = Distance(word, command->get_name());
    if (distance == 0) return OkStatus();
    if (distance < least) {
      least = distance;
      nearest = command->get_name();
    }
  }
  return Status(Code::kInvalid, "there is no command \"" + word + "\"" +
                                    (nearest.empty() ? ";" : "; did you mean \"" + nearest + "\"?") +
                                    " `cairn --help` lists all");
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv) {
  CLI::App app;
  Invocation invocation;
  DescribeCommandLine(&app, &invocation);
  if (const Status known = CheckSubcommand(app, argc, argv); !known.ok()) {
    std::fprintf(stderr, "cairn: %s\n", known.message().c_str());
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version come this way, too, with 0.
    return app.exit(error) == 0 ? kExitGood : kExitUsage;
  }
  return invocation.exit_code;
}

}  // namespace cairn
