// The command line of `cairn`: all its subcommands.
#ifndef CAIRN_RUNTIME_COMMAND_COMMAND_LINE_H_
#define CAIRN_RUNTIME_COMMAND_COMMAND_LINE_H_

#include "runtime/command/subcommand.h"

namespace cairn {

// To an app that has nothing yet. `invocation` outlives it.
void DescribeCommandLine(CLI::App* app, Invocation* invocation);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_COMMAND_LINE_H_
