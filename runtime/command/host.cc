#include "runtime/host/host.h"

#include <memory>

#include "runtime/command/subcommands.h"

namespace cairn {

void AddHost(CLI::App* app, Invocation* invocation) {
  auto options = std::make_shared<HostOptions>();
  Subcommand host =
      AddPlainSubcommand(app, invocation, "host",
                         "Serve the ranks of one step, as the process that asks Slurm and can "
                         "be reached. Slurm's plugin starts it\n"
                         "beside srun, and it ends with srun. By hand, beside mpirun, it "
                         "prints the ranks' environment on stdout and\n"
                         "serves until its stdin ends.",
                         "CAIRN_CHECKPOINT=auto CAIRN_DIR=/scratch/me/run7 cairn host --print-env",
                         [=] { return HostMain(*options); });
  const Argument fd = host.Option("--fd", "N", &options->fd, "the plugin's end of a socket pair");
  host.Flag("--print-env", nullptr, "print the ranks' environment, and serve until stdin ends").Excludes(fd);
  host.Option("--listen", "ADDRESS", &options->listen, "address to listen on (default: all)");
  host.RequireOptions(1, 2);
}

}  // namespace cairn
