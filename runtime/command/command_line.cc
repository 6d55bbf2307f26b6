#include "runtime/command/command_line.h"

#include <CLI/CLI.hpp>

#include "runtime/command/subcommands.h"
#include "runtime/version.h"

namespace cairn {

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

}  // namespace cairn
