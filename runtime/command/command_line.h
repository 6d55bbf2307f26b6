// The command line of `cairn`: all its subcommands.
#ifndef CAIRN_RUNTIME_COMMAND_COMMAND_LINE_H_
#define CAIRN_RUNTIME_COMMAND_COMMAND_LINE_H_

namespace cairn {

// Runs the subcommand that the arguments name, and returns the program's exit code.
int RunCommandLine(int argc, const char* const* argv);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_COMMAND_LINE_H_
