// cairn: the command for people, and the host process beside srun.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "runtime/command/command_line.h"
#include "runtime/s3/use_s3.h"

int main(int argc, char** argv) {
  using namespace cairn;
  UseS3();
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
