#include "runtime/host/host.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "runtime/command/subcommands.h"

namespace cairn {

void AddHost(CLI::App* app, Invocation* invocation) {
  auto options = std::make_shared<HostOptions>();
  CLI::App* host = app->add_subcommand("host",
                                       "Serve the ranks of one step, as the process that asks Slurm and can "
                                       "be reached. Slurm's plugin starts it\n"
                                       "beside srun, and it ends with srun. By hand, beside mpirun, it "
                                       "prints the ranks' environment on stdout and\n"
                                       "serves until its stdin ends.");
  host->footer("Example:\n  CAIRN_CHECKPOINT=auto CAIRN_DIR=/scratch/me/run7 cairn host --print-env");
  CLI::Option* fd =
      host->add_option("--fd", options->fd, "the plugin's end of a socket pair")->type_name("N");
  host->add_flag("--print-env")
      ->description("print the ranks' environment, and serve until stdin ends")
      ->excludes(fd);
  host->add_option("--listen", options->listen, "address to listen on (default: all)")->type_name("ADDRESS");
  host->require_option(1, 2);
  host->callback([=] { invocation->exit_code = HostMain(*options); });
}

}  // namespace cairn
