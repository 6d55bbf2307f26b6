// The subcommands of `cairn`. Each function adds one (pin.cc adds two) to `app`; the text that it gives to
// --help is its manual.
#ifndef CAIRN_RUNTIME_COMMAND_SUBCOMMANDS_H_
#define CAIRN_RUNTIME_COMMAND_SUBCOMMANDS_H_

#include "runtime/command/subcommand.h"

namespace cairn {

void AddLs(CLI::App* app, Invocation* invocation);
void AddShow(CLI::App* app, Invocation* invocation);
void AddVerify(CLI::App* app, Invocation* invocation);
void AddDiff(CLI::App* app, Invocation* invocation);
void AddExport(CLI::App* app, Invocation* invocation);
void AddFork(CLI::App* app, Invocation* invocation);
void AddImport(CLI::App* app, Invocation* invocation);
void AddTag(CLI::App* app, Invocation* invocation);
void AddPlan(CLI::App* app, Invocation* invocation);
void AddPins(CLI::App* app, Invocation* invocation);
void AddPrune(CLI::App* app, Invocation* invocation);
void AddDrain(CLI::App* app, Invocation* invocation);
void AddPush(CLI::App* app, Invocation* invocation);
void AddRuns(CLI::App* app, Invocation* invocation);
void AddWhy(CLI::App* app, Invocation* invocation);
void AddReport(CLI::App* app, Invocation* invocation);
void AddMetrics(CLI::App* app, Invocation* invocation);
void AddStatus(CLI::App* app, Invocation* invocation);
void AddSave(CLI::App* app, Invocation* invocation);
void AddDoctor(CLI::App* app, Invocation* invocation);
void AddSettings(CLI::App* app, Invocation* invocation);
void AddResize(CLI::App* app, Invocation* invocation);
void AddRehearse(CLI::App* app, Invocation* invocation);
void AddRun(CLI::App* app, Invocation* invocation);
void AddCompletion(CLI::App* app, Invocation* invocation);
void AddHost(CLI::App* app, Invocation* invocation);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_SUBCOMMANDS_H_
