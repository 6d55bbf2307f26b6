// The command line of `cairn`: all its subcommands.
#ifndef CAIRN_RUNTIME_COMMAND_COMMAND_LINE_H_
#define CAIRN_RUNTIME_COMMAND_COMMAND_LINE_H_

#include "runtime/command/subcommand.h"

namespace cairn {

// To an app that has nothing yet. `invocation` outlives it.
void DescribeCommandLine(CLI::App* app, Invocation* invocation);

// kInvalid when the first argument is the name of no subcommand, with the one that was probably meant. CLI11 would only say that a subcommand is
// missing.
Status CheckSubcommand(const CLI::App& app, int argc, const char* const* argv);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_COMMAND_LINE_H_
