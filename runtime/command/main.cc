// cairn: the command for people, and the host process beside srun.

#include <CLI/CLI.hpp>

#include "runtime/command/subcommands.h"
#include "runtime/s3/use_s3.h"
#include "runtime/version.h"

int main(int argc, char** argv) {
  using namespace cairn;
  CLI::App app(
      "Checkpoints of Slurm jobs. A job that was started with `srun --checkpoint` is saved and resumes "
      "after\n"
      "preemption, time limits and node failures; this command shows, checks and steers what it keeps.\n"
      "DIR is a run's directory (--checkpoint-dir), or s3://BUCKET/PREFIX; DIR@STEP and DIR@TAG name one\n"
      "checkpoint in it.",
      "cairn");
  app.footer(
      "Each command has its own --help, with an example, and prints one JSON document with --json.\n"
      "Exit code: 0 good, 1 something bad was found or the request failed, 2 wrong usage.");
  app.set_version_flag("--version", std::string("cairn ") + kVersion);
  app.require_subcommand(1);
  UseS3();
  Invocation invocation;
  AddLs(&app, &invocation);
  AddShow(&app, &invocation);
  AddVerify(&app, &invocation);
  AddDiff(&app, &invocation);
  AddExport(&app, &invocation);
  AddFork(&app, &invocation);
  AddImport(&app, &invocation);
  AddPlan(&app, &invocation);
  AddTag(&app, &invocation);
  AddPins(&app, &invocation);
  AddPrune(&app, &invocation);
  AddRuns(&app, &invocation);
  AddWhy(&app, &invocation);
  AddStatus(&app, &invocation);
  AddSave(&app, &invocation);
  AddDoctor(&app, &invocation);
  AddSettings(&app, &invocation);
  AddResize(&app, &invocation);
  AddRehearse(&app, &invocation);
  AddRun(&app, &invocation);
  AddHost(&app, &invocation);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version come this way, too, with 0.
    return app.exit(error) == 0 ? kExitGood : kExitUsage;
  }
  return invocation.exit_code;
}
