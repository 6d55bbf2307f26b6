// The `cairn` command.
#include <CLI/CLI.hpp>

#include "runtime/host/host.h"

int main(int argc, char** argv) {
  CLI::App app("Cairn: Slurm jobs that survive preemption, time limits, node failures and resizes");
  app.require_subcommand(1);

  cairn::HostOptions host;
  CLI::App* host_command = app.add_subcommand("host", "serve the ranks of one step (started by srun's plugin, or beside mpirun)");
  CLI::Option* fd = host_command->add_option("--fd", host.fd, "the plugin's end of a socket pair");
  bool print_env = false;
  CLI::Option* print = host_command->add_flag("--print-env", print_env, "print the ranks' environment on stdout, and serve until stdin ends");
  print->excludes(fd);
  host_command->add_option("--listen", host.listen, "address to listen on (default: all)");
  host_command->require_option(1, 2);

  CLI11_PARSE(app, argc, argv);
  return cairn::HostMain(host);
}
